-- Lets a document that was set aside take part again at once.
local kind, name, client = ARGV[1], ARGV[2], ARGV[3]
local key = doc_key(kind, name)
if call('HDEL', BLOCKED, kind .. ':' .. name) == 0 then return 0 end
local old = pcall_('HMGET', key, 'm', 'p', 'h')
if not old.err then
  call('HDEL', key, 'b')
  local due = marked(old[1])
  if kind == 'job' and due ~= '' then
    place(old[2], old[3], name, due)
    write_due()
  end
end
return tonumber(notify(client))
