-- The names of the documents of a kind that any session holds, in no order.
local kind, seen, names = ARGV[1], {}, {}
for _, holder in ipairs(call('HKEYS', HOLDERS)) do
  for _, name in ipairs(call('ZRANGE', HELD .. kind .. ':' .. holder, 0, -1)) do
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
end
return names
