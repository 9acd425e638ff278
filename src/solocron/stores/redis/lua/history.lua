-- Records of the log, newest first: one page of the sorted sets that are named, the newest of all of them.
local high, low, offset, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = {}
for i = 5, #ARGV do
  local page = call('ZREVRANGEBYSCORE', PREFIX .. ARGV[i], high, low, 'WITHSCORES', 'LIMIT', offset, limit)
  for j = 1, #page, 2 do found[#found + 1] = page[j] end
end
local out = {}
for first = 1, #found, 500 do
  local keys = {}
  for i = first, math.min(first + 499, #found) do keys[#keys + 1] = RUN .. found[i] end
  for i, text in ipairs(call('MGET', unpack(keys))) do
    out[#out + 1] = found[first + i - 1]
    out[#out + 1] = text
  end
end
return out
