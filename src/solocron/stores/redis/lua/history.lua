-- Records of the log, newest first: one page of each sorted set that is named.
local high, low, offset, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local out = {}
for i = 5, #ARGV do
  local page, keys, found = call('ZREVRANGEBYSCORE', PREFIX .. ARGV[i], high, low, 'LIMIT', offset, limit), {}, {}
  for j, member in ipairs(page) do keys[j] = RUN .. member end
  if #keys > 0 then
    for j, text in ipairs(call('MGET', unpack(keys))) do
      found[2 * j - 1] = page[j]
      found[2 * j] = text or ''
    end
  end
  out[#out + 1] = found
end
return out
