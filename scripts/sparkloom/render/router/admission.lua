-- Who asks, how much he may, which model he means, and what he used. router.lua, behind the whole body, sends it on or says
-- what is wrong with it. One worker runs this (envoy --concurrency 1), so these tables are the whole router's.
local format = string.format

local SHORT = 64 * 1024
local LOOK = 1 -- second between two looks at the key of a stream
local PATIENCE = 5 -- seconds in which so much of a body comes
local key_version, keys = nil, {} -- of the last table that could be read; before the first one nobody has a key
local room, longest = 0, 0 -- bytes of bodies that are here at a time, and of one
local buckets, counted = {}, {}

local function person(line) -- of `sparkloom.onnode.key_table`: a hash and words; one that was taken away is nobody
  local hash, told = line:match("^(%x+) (.*)$")
  local who = {}
  for name, value in (told or ""):gmatch("(%a+)=(%S+)") do who[name] = value end
  if not who.name or who.taken then return nil end
  for _, name in ipairs({"requests", "tokens", "places", "ends"}) do who[name] = tonumber(who[name]) end
  who.hash = hash
  return hash, who
end

-- The file is looked at with each request, its first line tells whether the rest is another: a key that is taken away
-- opens nothing from the moment on at which the kubelet swaps the folder.
local function refresh(handle)
  refresh_models(handle)
  local told = handle:virtualHost():metadata()
  room, longest = told:get("room"), told:get("longest")
  local file = io.open(told:get("keys_file"))
  if not file then return end
  local now = file:read("*l")
  if now and now ~= key_version then
    key_version, keys = now, {}
    for line in file:lines() do
      local hash, who = person(line)
      if hash then keys[hash] = who end
    end
  end
  file:close()
end

local function seconds(handle)
  return handle:timestamp(EnvoyTimestampResolution.MILLISECOND) / 1000
end

-- Who asks ------------------------------------------------------------------------------------------------------------

local function brought(headers) -- as OpenAI's clients send it (a scheme is in any case: RFC 9110), or Anthropic's
  local scheme, bearer = (headers:get("authorization") or ""):match("^(%a+) +(%S+)$")
  local key = scheme and scheme:lower() == "bearer" and bearer or headers:get("x-api-key")
  return key and #key <= 512 and key or nil
end

local function turn_away(handle, status, code, message, headers)
  local size = tonumber(handle:headers():get("content-length") or "")
  if size and size <= SHORT then handle:body() end -- answered while they send, some clients lose the answer
  refuse(handle, status, code, message, headers)
end

local function ended(who, now)
  return who.ends and now >= who.ends
end

local function asker(handle) -- whoever is nobody is told so
  local key = brought(handle:headers())
  local who = key and keys[sha256(key)]
  if who and not ended(who, seconds(handle)) then return who end
  local why = who and "the key of " .. who.name .. " has ended" or "no such key; write Authorization: Bearer KEY"
  handle:streamInfo():dynamicMetadata():set(SPACE, "person", who and who.name or "")
  turn_away(handle, "401", "invalid_api_key", why, {["www-authenticate"] = "Bearer"})
end

-- How much a minute: buckets that fill up within it -------------------------------------------------------------------

local function level(name, kind, per_minute, now)
  local held = buckets[name .. " " .. kind]
  if not held then
    held = {per_minute, now}
    buckets[name .. " " .. kind] = held
  end
  held[1] = math.min(per_minute, held[1] + (now - held[2]) * per_minute / 60)
  held[2] = now
  return held
end

local function over(who, now) -- what is used up, and for how many seconds
  if who.requests then
    local held = level(who.name, "requests", who.requests, now)
    if held[1] < 1 then return format("%d requests", who.requests), (1 - held[1]) * 60 / who.requests end
  end
  if who.tokens then
    local held = level(who.name, "tokens", who.tokens, now)
    if held[1] <= 0 then return format("%d tokens", who.tokens), (1 - held[1]) * 60 / who.tokens end
  end
end

local function spend(name, kind, amount)
  local held = buckets[name .. " " .. kind]
  if held then held[1] = held[1] - amount end
end

-- What was used -------------------------------------------------------------------------------------------------------

local function count(what, person, model, status, amount)
  local series = format('%s{person=%s,model=%s%s}', what, quoted(person), quoted(model),
    status and format(',status="%s"', status) or "")
  counted[series] = (counted[series] or 0) + amount
end

-- Requests that are here. Envoy says nothing of one whose client left: its handle, which nobody else holds, is collected.

local flights, last = {}, 0
local handles = setmetatable({}, {__mode = "k"})
local here = {} -- requests by person and model

local function take_off(handle, person)
  last = last + 1
  flights[last], handles[handle] = {person = person, came = 0, size = 0, marked = 0, moved = 0}, last
  return last
end

local function land(number)
  local flight = flights[number]
  if flight.place then here[flight.place] = here[flight.place] - 1 end
  if flight.prompt then count("sparkloom_router_prompt_tokens_total", flight.person, flight.model, nil, flight.prompt) end
  flights[number] = nil
end

local function settle()
  local alive = {}
  for _, number in pairs(handles) do alive[number] = true end
  for number in pairs(flights) do
    if not alive[number] then land(number) end
  end
end

local function look_for_room(is_there) -- what was finalized goes with the second collection
  if is_there() then return true end
  for _ = 1, 2 do
    collectgarbage()
    settle()
    if is_there() then return true end
  end
end

local function metrics(handle) -- of people and models; Envoy's own stand at /stats/prometheus
  look_for_room(function() return next(flights) == nil end)
  local lines, series = {}, {}
  for name in pairs(counted) do series[#series + 1] = name end
  table.sort(series)
  local before
  for _, name in ipairs(series) do
    local family = name:match("^[^{]+")
    if family ~= before then lines[#lines + 1] = "# TYPE " .. family .. " counter" end
    before = family
    lines[#lines + 1] = format("%s %.0f", name, counted[name])
  end
  refresh(handle)
  lines[#lines + 1] = "# TYPE sparkloom_router_table_info gauge"
  lines[#lines + 1] = format('sparkloom_router_table_info{version=%s} 1', quoted((version or "") .. "+" .. (key_version or "")))
  handle:respond({[":status"] = "200", ["content-type"] = "text/plain; version=0.0.4"}, table.concat(lines, "\n") .. "\n")
end

local function watched(handle) -- at a port that clients are not led to
  local port = handle:streamInfo():downstreamLocalAddress():match(":(%d+)$")
  if port == handle:virtualHost():metadata():get("counts_port") then return metrics(handle) end
  handle:respond({[":status"] = "404"}, "")
end

-- A body, in pieces. One that moves has room for all that it promised, one that stalls for what came of it; where there is
-- none, the rest is thrown away. Half of the room is one person's, or as much as one body may have. ------------------------

local function is_room(flight, person, size, now)
  return function()
    local all, own = size, size
    for _, other in pairs(flights) do
      local held = other ~= flight and (now - other.moved < PATIENCE and other.size or other.came) or 0
      all, own = all + held, own + (other.person == person and held or 0)
    end
    return all <= room and own <= math.max(room / 2, longest)
  end
end

-- Of one model, half of what may be at its engine and wait for it is one person's; the number where no more is his.
local function crowded(flight, who, model)
  local place, most = flight.person .. " " .. model.id, who.places or model.share
  if not look_for_room(function() return (here[place] or 0) < most end) then return most end
  here[place], flight.place = (here[place] or 0) + 1, place
end

local function read_body(handle, who, path, number)
  local flight = flights[number]
  local reader = body_reader(function(asked)
    local model = models[asked]
    return model and opens(who, asked) and model.name or nil
  end, path == "/v1/chat/completions" or path == "/v1/completions")
  local promised, length, full = math.min(tonumber(handle:headers():get("content-length") or "") or longest, longest), 0, false
  local total = 0
  for chunk in handle:bodyChunks() do
    local size, now = chunk:length(), seconds(handle)
    total = total + size
    if not full and flight.came + size > SHORT and now - flight.moved >= PATIENCE then
      full = not look_for_room(is_room(flight, who.name, math.max(promised, flight.came + size), now))
      if not full then flight.size, flight.moved, flight.marked = promised, now, flight.came end
    end
    if full or reader.wrong then
      chunk:setBytes("") -- what came before stays in Envoy's buffer, and counted, until it is answered
    else
      local text = read_piece(reader, chunk:getBytes(0, size))
      chunk:setBytes(text)
      length, flight.came = length + #text, flight.came + size
      if flight.size > 0 and flight.came - flight.marked >= SHORT then flight.moved, flight.marked = now, flight.came end
    end
  end
  flight.size = flight.came
  local whole = reader.wants == "nothing" and not reader.wrong
  local model = whole and models[named(reader)]
  local kept = handle:streamInfo():dynamicMetadata()
  kept:set(SPACE, "full", full)
  if total > longest then kept:set(SPACE, "too_long", longest) end
  local crowd = model and opens(who, named(reader)) and not full and crowded(flight, who, model)
  if crowd then kept:set(SPACE, "crowd", crowd) end
  kept:set(SPACE, "asked", whole and named(reader) or "")
  kept:set(SPACE, "length", length)
  kept:set(SPACE, "streams", reader.found.stream == "true")
  if reader.unasked then kept:set(SPACE, "unasked", true) end
  if path == "/v1/responses" then kept:set(SPACE, "responses", true) end
end

-- The request's number; what he may not is said at once, before his body comes.
local function admit(handle, who, method)
  local kept, now = handle:streamInfo():dynamicMetadata(), seconds(handle)
  kept:set(SPACE, "person", who.name)
  local what, wait = over(who, now)
  if what then
    turn_away(handle, "429", "rate_limit_exceeded", what .. " a minute are granted to " .. who.name,
      {["retry-after"] = format("%d", math.max(1, math.ceil(wait)))})
    return nil
  end
  local size = tonumber(handle:headers():get("content-length") or "") or 0
  if method == "POST" and size > SHORT and not look_for_room(is_room(nil, who.name, math.min(size, longest), now)) then
    turn_away(handle, "503", "router_full", "as much is on its way as has room here", {["retry-after"] = "5"})
    return nil
  end
  spend(who.name, "requests", 1)
  local number = take_off(handle, who.name)
  flights[number].hash = who.hash
  kept:set(SPACE, "who", who)
  kept:set(SPACE, "flight", number)
  return number
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local path, method = headers:get(":path"):match("^[^?]*"), headers:get(":method")
  if path == "/metrics" then return watched(handle) end
  refresh(handle)
  local page, number, who = path == "/" or path:sub(1, 6) == "/page/", nil, nil
  local acts = path:sub(1, 10) == "/page/act/"
  if not page or acts or path:sub(1, 11) == "/page/data/" then -- the page's files are for everybody
    who = asker(handle)
    if not who then return end
    if acts and (tonumber(headers:get("content-length") or "") or longest) > SHORT then
      return turn_away(handle, "413", "too_long", "that is longer than the page takes")
    end
    if not page then
      number = admit(handle, who, method)
      if not number then return end
    end
  end
  if method == "GET" then -- who answers it would take one for the next request
    local sent = handle:body()
    if sent and sent:length() > 0 then
      return turn_away(handle, "413", "a_body", "a GET brings none")
    end
  end
  -- The page looks at the key of who acts once more, as others than this may reach it.
  for _, name in ipairs({"x-api-key", "cookie", not acts and "authorization" or nil}) do headers:remove(name) end
  if not page and method == "POST" then read_body(handle, who, path, number) end
end

-- The answer: the engine's own count. Until it comes, and where a client leaves before, an event with text is a token and
-- four bytes of the request are one. -----------------------------------------------------------------------------------

local TEXTS = {content = true, reasoning_content = true, reasoning = true, text = true, thinking = true, partial_json = true,
  arguments = true}
local RESPONSES = {delta = true} -- its other events say all that was said once more

local function figure(text, ...)
  for _, name in ipairs({...}) do
    local number = text:match('"' .. name .. '"%s*:%s*(%d+)')
    if number then return tonumber(number) end
  end
end

local function has_text(event, names)
  for name in event:gmatch('"([%a_]+)": ?"[^"]') do
    if names[name] then return true end
  end
end

-- The event of a stream that only this asked for: it has no choices, and clients that did not ask look at the first one.
local function without_usage(text)
  return (text:gsub("data: {[^\n]*\n\n?", function(event)
    if find(event, '"choices": ?%[%]') and find(event, '"usage": ?{') then return "" end
  end))
end

local function last_usage(text)
  local at, from = nil, 1
  while true do
    from = find(text, '"usage"', from, true)
    if not from then return at end
    at, from = from, from + 7
  end
end

-- A key that was taken away or has ended: the engine's supervisor cuts the connection off, which frees its place. Where that
-- fails, nothing more of the answer is passed on.
local function cut_off(handle, told, from)
  local supervisor = (models[told.model] or {}).supervisor
  if supervisor then
    handle:httpCall(supervisor, {[":method"] = "DELETE", [":path"] = "/clients/" .. from, [":authority"] = "rank"}, nil, 2000)
  end
end

local function answered(handle, told, flight, from)
  local person, model, prompt, completion, tail, events = flight.person, flight.model, 0, 0, "", 0
  local names = told.responses and RESPONSES or TEXTS
  local looked, is_cut = seconds(handle), false
  local function used(heard, said)
    if heard > prompt then
      count("sparkloom_router_prompt_tokens_total", person, model, nil, heard - prompt)
      spend(person, "tokens", heard - prompt - (flight.prompt or 0))
      prompt, flight.prompt = heard, nil
    end
    if said > completion then
      count("sparkloom_router_completion_tokens_total", person, model, nil, said - completion)
      spend(person, "tokens", said - completion)
      completion = said
    end
  end
  for chunk in handle:bodyChunks() do
    local text, now = chunk:getBytes(0, chunk:length()), seconds(handle)
    local ends = false
    if now - looked >= LOOK then
      looked = now
      refresh(handle)
      local who = keys[flight.hash]
      ends = not is_cut and (not who or ended(who, now))
      is_cut = is_cut or ends
    end
    if is_cut then chunk:setBytes("") end
    if ends then cut_off(handle, told, from) end -- this lets others run: the piece cannot be touched any more
    for event in text:gmatch("data: ?([^\n]+)") do
      if has_text(event, names) then events = events + 1 end
    end
    local whole = tail .. text
    local at = last_usage(whole)
    local usage = at and sub(whole, at, at + 600) or ""
    used(figure(usage, "prompt_tokens", "input_tokens") or 0,
      figure(usage, "completion_tokens", "output_tokens") or events)
    tail = at and sub(whole, math.max(at, #whole - 700)) or sub(whole, -8)
    if at and told.unasked and not is_cut then chunk:setBytes(without_usage(text)) end
  end
  local kept = handle:streamInfo():dynamicMetadata()
  kept:set(SPACE, "prompt_tokens", prompt)
  kept:set(SPACE, "completion_tokens", completion)
end

local function explained(handle, model, status) -- an engine that goes down answers in plain text, or without a word
  if tonumber(status) < 500 or (handle:headers():get("content-type") or ""):find("json", 1, true) then return end
  local said = quoted("the engine of " .. model .. " answered " .. status .. " and did not say why")
  local body = string.format('{"error": {"message": %s, "type": "server_error", "code": "engine_failed"}}\n', said)
  local length = handle:body(true):setBytes(body) -- this waits for its end: headers of before are no more
  local headers = handle:headers()
  headers:replace("content-length", tostring(length))
  headers:replace("content-type", "application/json")
  headers:replace("retry-after", "5")
end

function envoy_on_response(handle)
  local from = handle:headers():get("x-sparkloom-from") or ""
  handle:headers():remove("x-sparkloom-from")
  local told = handle:streamInfo():dynamicMetadata():get(SPACE)
  if not told or not told.person then return end
  local status, flight = handle:headers():get(":status"), flights[told.flight or 0]
  count("sparkloom_router_requests_total", told.person, told.model or "", status, 1)
  if not flight then return end
  flight.came, flight.size = 0, 0 -- its body went to the engine
  if told.model and status == "200" then
    local context = tonumber(models[told.model] and models[told.model].entry:match('"max_model_len": (%d+)'))
    flight.model, flight.prompt = told.model, math.min(math.floor(told.length / 4), context or math.huge)
    spend(told.person, "tokens", flight.prompt)
    answered(handle, told, flight, from)
  end
  land(told.flight)
  if told.model then explained(handle, told.model, status) end
end
