-- Sets a document aside that fails on its own, longer each time, so that the others go on.
local kind, name, shift, first, most, reason = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local now, key, field = time(shift), doc_key(kind, name), kind .. ':' .. name
if call('EXISTS', key) == 0 then return 0 end
local before = call('HGET', BLOCKED, field)
local times = before and tonumber(string.match(before, '^%S+ (%S+)')) + 1 or 1
local until_ = now + math.min(first * 2 ^ math.min(times - 1, 16), most)
call('HSET', BLOCKED, field, int(until_) .. ' ' .. times .. ' ' .. reason)
local old = pcall_('HMGET', key, 'p', 'h', 'u')
if not old.err then
  call('HSET', key, 'b', int(until_))
  if kind == 'job' and old[3] and old[3] ~= '' then
    place(old[1], old[2], name, int(math.max(tonumber(old[3]), until_)))
    settle_heads()
  end
end
call('ZREM', OFFERED, name)
return times
