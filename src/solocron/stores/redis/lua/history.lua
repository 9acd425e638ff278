-- Records of the log, newest first: one page of the sorted sets that are named, the newest of all of them.
local high, low, offset, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = {}
for i = 5, #ARGV do
  local page = call('ZREVRANGEBYSCORE', PREFIX .. ARGV[i], high, low, 'WITHSCORES', 'LIMIT', offset, limit)
  for j = 1, #page, 2 do found[#found + 1] = page[j] end
end
local out = {}
for _, member in ipairs(found) do
  local run, attempt = string.match(member, '^(.*) 0*(%d+)$')
  out[#out + 1] = run
  out[#out + 1] = attempt
  out[#out + 1] = call('HGET', RUN .. run, attempt) or ''
end
return out
