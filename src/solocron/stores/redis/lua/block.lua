-- Sets a document aside until an instant, so that the others go on; one that is gone is left alone.
local kind, name, until_, times, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = doc_key(kind, name)
if call('EXISTS', key) == 0 then return 0 end
call('HSET', BLOCKED, kind .. ':' .. name, until_ .. ' ' .. times .. ' ' .. reason)
local old = pcall_('HMGET', key, 'm', 'p', 'h')
if not old.err then
  call('HSET', key, 'b', until_)
  local due = marked(old[1])
  if kind == 'job' and due ~= '' then
    place(old[2], old[3], name, int(math.max(tonumber(due), tonumber(until_))))
    write_due()
  end
end
return 1
