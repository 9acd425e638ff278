-- What became of a request whose reply was lost: its answer, or it is called off and will never do anything.
local memory, number = PREFIX .. 'client:' .. ARGV[1], tonumber(ARGV[2])
local known = call('GET', memory)
if known then
  local last, answer = string.match(known, '^(%d+) (.*)$')
  if tonumber(last) == number then return answer end
end
call('SET', memory, int(number) .. ' void', 'PX', ARGV[3])
return 'void'
