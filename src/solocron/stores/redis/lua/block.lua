-- Sets a document aside that fails on its own, longer each time, so that the others go on.
local kind, name, shift, first, most, reason = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local now, key, field = time(shift), doc_key(kind, name), kind .. ':' .. name
if call('EXISTS', key) == 0 then return 0 end
local before = call('HGET', BLOCKED, field)
local times = before and tonumber(string.match(before, '^%S+ (%S+)')) + 1 or 1
local until_ = now + math.min(first * 2 ^ math.min(times - 1, 16), most)
call('HSET', BLOCKED, field, int(until_) .. ' ' .. times .. ' ' .. reason)
local old = pcall_('HMGET', key, 'm', 'p', 'h')
if not old.err then
  call('HSET', key, 'b', int(until_))
  local due = marked(old[1])
  if kind == 'job' and due ~= '' then
    place(old[2], old[3], name, int(math.max(tonumber(due), until_)))
    settle_due()
  end
end
return times
