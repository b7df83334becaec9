-- The outermost object of a body, read as it comes: which model it asks for, and whether its answer streams. Nothing of it
-- is kept but a word that we read and whose end has not come. Of a body that an engine would take, this finds what the
-- engine finds; any other may be called wrong.
local find, sub = string.find, string.sub

local LONGEST_WORD = 1000
local MOST_STEPS = 1000000 -- a quote, a bracket or a key is one: a body of nothing else would hold everybody up
local steps = 0 -- of the body that is read now
local READ = {model = true, stream = true, stream_options = true}

-- Each of these ends what began before `at`, or says nil where the text ends first; `state` is what it goes on from.

local function string_end(state, text, at)
  while steps < MOST_STEPS do
    steps = steps + 1
    local quote = find(text, '"', at, true)
    local last = (quote or #text + 1) - 1
    local before = last
    while before >= at and byte(text, before) == 92 do before = before - 1 end
    local escaped = (last - before) % 2 == 1
    if before < at and state.escaped then escaped = not escaped end
    state.escaped = escaped and not quote
    if not quote then return nil end
    if not escaped then return quote end
    at = quote + 1
  end
end

local function nested_end(state, text, at)
  while steps < MOST_STEPS do
    steps = steps + 1
    if state.quoted then
      local quote = string_end(state, text, at)
      if not quote then return nil end
      state.quoted, at = false, quote + 1
    end
    at = find(text, '[%[%]{}"]', at)
    if not at then return nil end
    local sign = byte(text, at)
    if sign == 34 then
      state.quoted = true
    elseif sign == 91 or sign == 123 then
      state.depth = state.depth + 1
    else
      state.depth = state.depth - 1
      if state.depth == 0 then return at end
    end
    at = at + 1
  end
end

local function literal_end(_, text, at)
  local after = find(text, "[,}%]%s]", at)
  return after and after - 1
end

local function begun(text, at) -- what a value is ended by, from its first sign on, and where that goes on
  local sign = byte(text, at)
  if sign == 34 then return {ended = string_end}, at + 1 end
  if sign == 91 or sign == 123 then return {ended = nested_end, depth = 1}, at + 1 end
  return {ended = literal_end}, at
end

-- `spelled` says how the engine calls a model, nil of one that may not be asked; `tells`: the engine must be asked for a
-- stream's usage.
local function body_reader(spelled, tells)
  return {wants = "object", held = "", steps = 0, found = {}, spelled = spelled, tells = tells}
end

local function wrong(reader)
  reader.wrong = true
  return ""
end

local function named(reader) -- a JSON string without escapes but \/; anything else is no model's name
  local value = reader.found.model
  if not value or byte(value, 1) ~= 34 then return nil end
  local name = sub(value, 2, -2):gsub("\\/", "/")
  return name
end

local function asks_for_usage(reader) -- of two that stand in an object, an engine takes the last
  local options = reader.found.stream_options or ""
  if not reader.tells or reader.found.stream ~= "true" or find(options, '"include_usage"%s*:%s*true') then return "" end
  reader.unasked = true
  return (reader.wants == "first key" and "" or ",") .. '"stream_options":{"include_usage":true}'
end

-- One of each sign: what follows, and from where.
local function step(reader, text, first, put)
  local sign, wants = byte(text, first), reader.wants
  if wants == "object" and sign == 123 then
    reader.wants = "first key"
  elseif sign == 125 and (wants == "first key" or wants == "comma") then
    put(first, first - 1, asks_for_usage(reader))
    reader.wants = "nothing"
  elseif wants == "comma" and sign == 44 then
    reader.wants = "key"
  elseif wants == "colon" and sign == 58 then
    reader.wants = "value"
  elseif sign == 34 and (wants == "key" or wants == "first key") then
    local quote = find(text, '"', first + 1, true)
    if not quote then return nil end
    reader.key = sub(text, first + 1, quote - 1)
    if find(reader.key, "\\", 1, true) or reader.found[reader.key] then return wrong(reader) and nil end
    reader.wants = "colon"
    return quote + 1
  elseif wants == "value" and sign ~= 44 and sign ~= 125 and sign ~= 93 then
    local value, from = begun(text, first)
    reader.wants = "comma"
    if not READ[reader.key] then
      reader.value = value
      return from
    end
    local last = value.ended(value, text, from)
    if not last then
      reader.wants = "value"
      return nil
    end
    reader.found[reader.key] = sub(text, first, last)
    local name = reader.key == "model" and reader.spelled(named(reader))
    if name then put(first, last, '"' .. name .. '"') end
    return last + 1
  else
    return wrong(reader) and nil
  end
  return first + 1
end

-- What goes on of a piece, and of what was held of those before it.
local function read_piece(reader, piece)
  if reader.wrong then return "" end
  local text, parts, copied, at = reader.held .. piece, {}, 1, 1
  local function put(first, last, instead)
    parts[#parts + 1] = sub(text, copied, first - 1)
    parts[#parts + 1] = instead
    copied = last + 1
  end
  reader.held, steps = "", reader.steps
  while steps < MOST_STEPS do
    steps = steps + 1
    if reader.value then
      local last = reader.value.ended(reader.value, text, at)
      if not last then break end
      reader.value, at = nil, last + 1
    end
    local first = find(text, "[^%s]", at)
    if not first then break end
    at = step(reader, text, first, put)
    if reader.wrong then return "" end
    if not at then
      reader.held = sub(text, first)
      if #reader.held > LONGEST_WORD then return wrong(reader) end
      put(first, #text, "")
      break
    end
  end
  reader.steps = steps
  if steps >= MOST_STEPS then return wrong(reader) end
  if copied == 1 then return text end
  parts[#parts + 1] = sub(text, copied)
  return table.concat(parts)
end

