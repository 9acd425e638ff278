-- When the jobs of a page of names are due: name and due instant, in turn; only those that are due some time.
-- What is due is kept by pool and handler, for claims; a further index of all would cost each of them a write.
local names = call('ZRANGEBYLEX', NAMES .. 'job', ARGV[1] == '' and '-' or '(' .. ARGV[1], '+', 'LIMIT', 0, ARGV[2])
local out = { names[#names] or '' }
for _, name in ipairs(names) do
  local mark = pcall_('HGET', doc_key('job', name), 'm')
  local due = marked(type(mark) == 'string' and mark or '')
  if due ~= '' then
    out[#out + 1] = name
    out[#out + 1] = due
  end
end
return out
