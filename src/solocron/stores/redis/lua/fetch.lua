-- Finds documents (due, named, held by a session, or all of a kind) and returns them with the time.
--
-- A due document that is handed out for an update is names_at to that client for a moment: the others pass it over
-- instead of computing the same change and losing the race. A reservation is not a lock; the commit compares versions. It is
-- one field for all that were handed out together: until when, and the names.
local mode, kind, shift, session = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = time(shift)
local names, next_due, more = {}, nil, '0'
local live = session == '' or call('HGET', doc_key('session', session), 'l') == 'live'

-- Names are ordered by their bytes, but Lua compares strings by the server's locale, which may or may not do so.
local bytewise = '-' < '.' and '.' < '0' and '9' < 'A' and 'B' < 'a' and 'Z' < '_' and '_' < 'a'

local function less(a, b)
  if bytewise then return a < b end
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- A heap of {due, name, advance}: the earliest on top, names deciding between equals.
local heap = {}

local function before(a, b)
  return a[1] < b[1] or (a[1] == b[1] and less(a[2], b[2]))
end

local function push(item)
  local i = #heap + 1
  while i > 1 do
    local parent = math.floor(i / 2)
    if not before(item, heap[parent]) then break end
    heap[i] = heap[parent]
    i = parent
  end
  heap[i] = item
end

local function pop()
  local top, last = heap[1], table.remove(heap)
  local size = #heap
  if size > 0 then
    local i = 1
    while true do
      local child = 2 * i
      if child > size then break end
      if child < size and before(heap[child + 1], heap[child]) then child = child + 1 end
      if not before(heap[child], last) then break end
      heap[i] = heap[child]
      i = child
    end
    heap[i] = last
  end
  return top
end

-- Pushes the jobs of one handler after its first, which the pool's heads have brought already.
local function walk_handler(pool, handler)
  local key, offset, size, page, i = due_key(pool, handler), 1, 2, nil, 1
  local function advance()
    if not page or i > #page then
      if page and #page < 2 * size then return end
      if page then
        offset = offset + size
        size = math.min(size * 4, 128)
      end
      page, i = call('ZRANGE', key, offset, offset + size - 1, 'WITHSCORES'), 1
      if #page == 0 then return end
    end
    push({ tonumber(page[i + 1]), page[i], advance })
    i = i + 2
  end
  advance()
end

-- Pushes the first job of each handler that the node has.
local function walk_pool(pool, handlers)
  local key, offset, size, known, i = heads_key(pool), 0, 32, {}, 1
  local done = false
  local function advance()
    while i > #known do
      if done then return end
      local page = call('ZRANGE', key, offset, offset + size - 1, 'WITHSCORES')
      done = #page < 2 * size
      offset = offset + size
      size = 128
      known, i = {}, 1
      if #page > 0 then
        local firsts, wanted = {}, {}
        for j = 1, #page, 2 do
          local name, handler = cut_head(page[j])
          firsts[#firsts + 1] = { tonumber(page[j + 1]), name }
          wanted[#wanted + 1] = handler
        end
        local has = call('SMISMEMBER', handlers, unpack(wanted))
        for j, first in ipairs(firsts) do
          if has[j] == 1 then
            first[3] = function()
              walk_handler(pool, wanted[j])
              advance()
            end
            known[#known + 1] = first
          end
        end
      end
    end
    push(known[i])
    i = i + 1
  end
  advance()
end

-- Jobs of the node's handlers and pools whose time has come, oldest first, and the first instant after them.
local function select_due()
  local limit, reserve_for, reservation, handlers = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], PREFIX .. 'handlers:' .. ARGV[8]
  local pools = tonumber(ARGV[9])
  if call('EXISTS', handlers) == 0 then
    return redis.error_reply('NOHANDLERS the set of handlers is not known here')
  end
  local skip, reserved = {}, {}
  for i = 10 + pools, #ARGV do skip[ARGV[i]] = true end
  local clock = now - shift
  if reserve_for > 0 then
    local known = call('HGETALL', RESERVATIONS)
    for i = 1, #known, 2 do
      local till, names_at = string.match(known[i + 1], '^(%d+) ()')
      till = tonumber(till)
      if till <= clock then
        call('HDEL', RESERVATIONS, known[i])
      else
        for _, name in ipairs(cmsgpack.unpack(string.sub(known[i + 1], names_at))) do reserved[name] = till end
      end
    end
  end
  for i = 10, 9 + pools do walk_pool(ARGV[i], handlers) end
  while #heap > 0 do
    local top = pop()
    if not skip[top[2]] then
      if top[1] > now or #names >= limit then
        next_due = math.min(next_due or top[1], top[1])
        break
      end
      if reserved[top[2]] then
        next_due = math.min(next_due or reserved[top[2]] + shift, reserved[top[2]] + shift)
      else
        names[#names + 1] = top[2]
      end
    end
    top[3]()
  end
  if reserve_for > 0 and #names > 0 then
    call('HSET', RESERVATIONS, reservation, int(clock + reserve_for) .. ' ' .. cmsgpack.pack(names))
  end
end

-- One page of a set of names, which lies in their order.
local function page(key, after, limit)
  names = call('ZRANGEBYLEX', key, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit + 1)
  if #names > limit then
    names[#names] = nil
    more = '1'
  end
end

local failed
if not live then
  names = {} -- nothing is names_at to the dead
elseif mode == 'due' then
  failed = select_due()
elseif mode == 'named' then
  for i = 5, #ARGV do names[#names + 1] = ARGV[i] end
elseif mode == 'held' then
  page(HELD .. kind .. ':' .. ARGV[7], ARGV[5], tonumber(ARGV[6]))
else
  page(NAMES .. kind, ARGV[5], tonumber(ARGV[6]))
end
if failed then return failed end

local head = { int(now), next_due and int(next_due) or '-', live and '1' or '0', more, call('GET', COMMITS) or '0' }
-- One text, because a reply of four texts per document costs a client without a C parser more than its work.
local texts = { table.concat(head, ' '), '\n' }
local size, documents = #texts, PREFIX .. kind .. ':'
for _, name in ipairs(names) do
  local found = pcall_('HMGET', documents .. name, 'm', 'd', 's')
  local mark, fixed, state = found[1] or '', found[2] or '', found[3] or ''
  if found.err then mark, fixed = '!', found.err end
  texts[size + 1] = struct.pack('>I4I4I4I4', #name, #mark, #fixed, #state)
  texts[size + 2] = name
  texts[size + 3] = mark
  texts[size + 4] = fixed
  texts[size + 5] = state
  size = size + 5
end
return table.concat(texts)
