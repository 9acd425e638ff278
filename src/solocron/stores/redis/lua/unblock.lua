-- Lets a document that was set aside take part again at once.
local kind, name, client = ARGV[1], ARGV[2], ARGV[3]
local key = doc_key(kind, name)
if call('HDEL', BLOCKED, kind .. ':' .. name) == 0 then return 0 end
local old = pcall_('HMGET', key, 'p', 'h', 'u')
if not old.err then
  call('HDEL', key, 'b')
  if kind == 'job' and old[3] and old[3] ~= '' then
    place(old[1], old[2], name, old[3])
    settle_heads()
  end
end
ring(client)
return 1
