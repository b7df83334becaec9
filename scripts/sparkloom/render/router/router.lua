-- What Envoy cannot be told in its configuration: which model a body asks for, who may, how much, what was used.
-- admission.lua has seen whose key it is before a body was read; between the two Envoy's own buffer waits for the whole of it.
-- One worker runs this (envoy --concurrency 1), so these tables are the whole router's. Who may do what stands in the
-- metadata of the routes, which Envoy takes anew from their file while streams go on; `version` says when it changed.
local byte, find, sub, format = string.byte, string.find, string.sub, string.format

local SPACE = "sparkloom" -- of what the request's part tells the answer's part and the access log
local version, models, called = nil, {}, {} -- `called`: all names of each group
local buckets, counted = {}, {}
local up, looked = {}, 0 -- of each group, whether its engine is, and when that was asked
local LONG = 4 * 1024 * 1024

-- The outermost object of a body: where the values of its keys begin and end -----------------------------------------

local function string_end(text, at) -- `at` is the opening quote
  while true do
    local quote = find(text, '"', at + 1, true)
    if not quote then return nil end
    local before = quote - 1
    while byte(text, before) == 92 do before = before - 1 end
    if (quote - before) % 2 == 1 then return quote end
    at = quote
  end
end

local function nested_end(text, at) -- `at` is the opening bracket
  local depth, next = 0, at
  while next do
    local sign = byte(text, next)
    if sign == 34 then
      next = string_end(text, next)
      if not next then return nil end
    elseif sign == 91 or sign == 123 then
      depth = depth + 1
    else
      depth = depth - 1
      if depth == 0 then return next end
    end
    next = find(text, '[%[%]{}"]', next + 1)
  end
end

local function value_end(text, at)
  local sign = byte(text, at)
  if sign == 34 then return string_end(text, at) end
  if sign == 91 or sign == 123 then return nested_end(text, at) end
  local last = find(text, "[,}%]%s]", at)
  return last and last > at and last - 1 or nil
end

local function outermost(text) -- nil where it is no object, or where a key that we read stands twice
  local at = find(text, "[^%s]")
  if not at or byte(text, at) ~= 123 then return nil end
  local found = {[0] = at}
  at = find(text, "[^%s]", at + 1)
  if at and byte(text, at) == 125 then return found end
  while at and byte(text, at) == 34 do
    local quote = string_end(text, at)
    if not quote then return nil end
    local key = sub(text, at + 1, quote - 1)
    local colon = find(text, "[^%s]", quote + 1)
    if not colon or byte(text, colon) ~= 58 then return nil end
    local first = find(text, "[^%s]", colon + 1)
    local last = first and value_end(text, first)
    if not last then return nil end
    if found[key] then return nil end
    found[key] = {first, last}
    at = find(text, "[^%s]", last + 1)
    if not at then return nil end
    if byte(text, at) == 125 then return found end
    if byte(text, at) ~= 44 then return nil end
    at = find(text, "[^%s]", at + 1)
  end
end

local function text_of(body, place) -- a JSON string without escapes but \/; anything else is no model's name
  if not place or byte(body, place[1]) ~= 34 then return nil end
  local text = sub(body, place[1] + 1, place[2] - 1):gsub("\\/", "/")
  return text
end

-- Answers of our own --------------------------------------------------------------------------------------------------

local function quoted(text)
  return '"' .. text:gsub('[%c"\\\127-\255]', function(c)
    return byte(c) < 128 and format("\\u%04x", byte(c)) or "?"
  end) .. '"'
end

local function count(what, person, model, status, amount)
  local series = format('%s{person=%s,model=%s%s}', what, quoted(person), quoted(model),
    status and format(',status="%s"', status) or "")
  counted[series] = (counted[series] or 0) + amount
end

local function refuse(handle, person, model, status, code, message, wait)
  count("sparkloom_router_requests_total", person, model, status, 1)
  local kind = status == "401" and "authentication_error" or status == "429" and "rate_limit_error"
    or "invalid_request_error"
  local headers = {[":status"] = status, ["content-type"] = "application/json"}
  if wait then headers["retry-after"] = format("%d", math.max(1, math.ceil(wait))) end
  if status == "401" then headers["www-authenticate"] = "Bearer" end
  handle:respond(headers, format('{"error": {"message": %s, "type": "%s", "code": "%s"}}\n', quoted(message), kind, code))
end

local function refresh(handle)
  local told = handle:virtualHost():metadata()
  local now = told:get("version")
  if now and now ~= version then
    version, models, called, looked = now, told:get("models") or {}, {}, 0
    for id, model in pairs(models) do
      called[model.group] = called[model.group] or {}
      table.insert(called[model.group], id)
    end
  end
end

local function metrics(handle) -- of people and models; Envoy's own stand at /stats/prometheus
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
  local file = io.open(handle:virtualHost():metadata():get("keys_file"))
  local of_keys = file and file:read("*l") or ""
  if file then file:close() end
  lines[#lines + 1] = "# TYPE sparkloom_router_table_info gauge"
  lines[#lines + 1] = format('sparkloom_router_table_info{version=%s} 1', quoted((version or "") .. "+" .. of_keys))
  handle:respond({[":status"] = "200", ["content-type"] = "text/plain; version=0.0.4"}, table.concat(lines, "\n") .. "\n")
end

local function watched(handle) -- at a port that clients are not led to
  local port = handle:streamInfo():downstreamLocalAddress():match(":(%d+)$")
  if port == handle:virtualHost():metadata():get("counts_port") then return metrics(handle) end
  handle:respond({[":status"] = "404"}, "")
end

-- Who, how much, what -------------------------------------------------------------------------------------------------

local function level(name, kind, per_minute, now) -- a bucket that fills up within a minute
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

local function opens(who, id) -- a model that is listed under any of its names
  if not who.models then return true end
  for _, name in ipairs(called[models[id].group]) do
    if find("," .. who.models .. ",", "," .. name .. ",", 1, true) then return true end
  end
  return false
end

local function names(who)
  local listed = {}
  for id in pairs(models) do
    if opens(who, id) then listed[#listed + 1] = id end
  end
  table.sort(listed)
  return listed
end

-- Envoy's own count of what answers its health checks; who lists models again and again is told what was so a moment ago.
local function look(handle, now)
  if now - looked < 2 then return end
  looked = now
  local headers, said = handle:httpCall("router-itself",
    {[":method"] = "GET", [":path"] = "/stats?filter=membership_healthy$", [":authority"] = "router"}, nil, 1000)
  if headers[":status"] ~= "200" then return end
  up = {}
  for group, healthy in (said or ""):gmatch("cluster%.([^\n]+)%.membership_healthy: (%d+)") do up[group] = healthy ~= "0" end
end

local function shown(id)
  local model = models[id]
  local is_up = up[model.counted]
  if is_up == nil then return model.entry end
  local asleep = model.sleeps and up[model.counted .. "+waker"] -- whom nobody can wake is down
  local state = is_up and "up" or asleep and "sleeps" or "down"
  return sub(model.entry, 1, -2) .. ', "state": "' .. state .. '"}'
end

local function list(handle, who, path, now)
  local one = path:match("^/v1/models/(.+)$")
  look(handle, now)
  count("sparkloom_router_requests_total", who.name, "", "200", 1)
  local head = {[":status"] = "200", ["content-type"] = "application/json"}
  if one then
    one = one:gsub("%%2[Ff]", "/")
    if models[one] and opens(who, one) then return handle:respond(head, shown(one) .. "\n") end
    return refuse(handle, who.name, "", "404", "model_not_found", "no model is called " .. one)
  end
  local entries = {}
  for _, id in ipairs(names(who)) do entries[#entries + 1] = shown(id) end
  handle:respond(head, '{"object": "list", "data": [' .. table.concat(entries, ", ") .. "]}\n")
end

-- Under the engine's own name, and with a stream's usage told, which engines leave out unless they are asked.
-- In one go: of a long body each step would be another copy.
local function rewritten(body, found, model, path)
  local streams = found.stream and sub(body, found.stream[1], found.stream[2]) == "true"
  local tells = streams and not found.stream_options and (path == "/v1/chat/completions" or path == "/v1/completions")
  local option = tells and '"stream_options":{"include_usage":true},' or ""
  if option == "" and text_of(body, found.model) == model.name then return nil, streams, false end
  local brace, first, last = found[0], found.model[1], found.model[2]
  return sub(body, 1, brace) .. option .. sub(body, brace + 1, first) .. model.name .. sub(body, last), streams, option ~= ""
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local path = headers:get(":path"):match("^[^?]*")
  if path == "/metrics" then return watched(handle) end
  refresh(handle)
  local now = handle:timestamp(EnvoyTimestampResolution.MILLISECOND) / 1000
  local kept = handle:streamInfo():dynamicMetadata()
  local who = (kept:get(SPACE) or {}).who
  if not who then return end -- the page's; nobody else comes here without one
  local what, wait = over(who, now)
  if what then
    return refuse(handle, who.name, "", "429", "rate_limit_exceeded",
      format("%s a minute are granted to %s", what, who.name), wait)
  end
  spend(who.name, "requests", 1)
  local lists, method = path:sub(1, 10) == "/v1/models", headers:get(":method")
  if lists and method == "GET" then return list(handle, who, path, now) end
  if lists or method ~= "POST" then
    return refuse(handle, who.name, "", "405", "method_not_allowed", (lists and "GET" or "POST") .. " is what is asked here")
  end

  local held = handle:body(true)
  local body = held:getBytes(0, held:length())
  local found = outermost(body)
  local asked = found and text_of(body, found.model)
  if not asked then
    return refuse(handle, who.name, "", "400", "no_model",
      'the body is no JSON object with "model": "NAME" in it, once; served here: ' .. table.concat(names(who), ", "))
  end
  local model = models[asked]
  if not model or not opens(who, asked) then
    return refuse(handle, who.name, "", "404", "model_not_found",
      format("no model is called %s; served here: %s", asked:sub(1, 200), table.concat(names(who), ", ")))
  end
  local changed, streams, unasked = rewritten(body, found, model, path)
  headers = handle:headers() -- what was taken before the wait for the body is not to be used after it
  local length = changed and held:setBytes(changed) or #body
  body, changed = nil, nil
  if length > LONG then collectgarbage() end -- it would lie here until the next one comes
  headers:replace("content-length", format("%d", length)) -- it is all here, also what came in chunks
  headers:remove("transfer-encoding")
  headers:replace("x-sparkloom-group", model.group)
  if streams and model.sleeps then headers:replace("x-sparkloom-stream", "true") end -- its waker holds it longer
  kept = handle:streamInfo():dynamicMetadata()
  kept:set(SPACE, "person", who.name)
  kept:set(SPACE, "model", model.id)
  if unasked then kept:set(SPACE, "unasked", true) end
end

-- What was used: the engine's own count. Until it comes, and where a client leaves before, an event is a token. ---------

local function figure(text, ...)
  for _, name in ipairs({...}) do
    local number = text:match('"' .. name .. '"%s*:%s*(%d+)')
    if number then return tonumber(number) end
  end
end

-- The event of a stream that only this asked for: it has no choices, and clients that did not ask look at the first one.
local function without_usage(text)
  return (text:gsub("data: {[^\n]*\n\n?", function(event)
    if find(event, '"choices": ?%[%]') and find(event, '"usage": ?{') then return "" end
  end))
end

function envoy_on_response(handle)
  local kept = handle:streamInfo():dynamicMetadata()
  local told = kept:get(SPACE)
  if not told then return end
  if told.turned then count("sparkloom_router_requests_total", told.turned, "", handle:headers():get(":status"), 1) end
  if not told.person then return end
  local person, model, status = told.person, told.model, handle:headers():get(":status")
  count("sparkloom_router_requests_total", person, model, status, 1)
  if status ~= "200" then return end
  local prompt, completion, tail = 0, 0, ""

  local function used(heard, said)
    if heard > prompt then
      count("sparkloom_router_prompt_tokens_total", person, model, nil, heard - prompt)
      spend(person, "tokens", heard - prompt)
      prompt = heard
    end
    if said > completion then
      count("sparkloom_router_completion_tokens_total", person, model, nil, said - completion)
      spend(person, "tokens", said - completion)
      completion = said
    end
  end

  local events = 0
  for chunk in handle:bodyChunks() do
    local text = chunk:getBytes(0, chunk:length())
    local at = 1
    while true do
      at = find(text, 'content": ?"[^"]', at)
      if not at then break end
      events, at = events + 1, at + 10
    end
    local whole = tail .. text
    local last, from = nil, 1
    while true do
      from = find(whole, '"usage"', from, true)
      if not from then break end
      last, from = from, from + 7
    end
    local usage = last and sub(whole, last, last + 600) or ""
    used(figure(usage, "prompt_tokens", "input_tokens") or 0,
      math.max(events, figure(usage, "completion_tokens", "output_tokens") or 0))
    tail = last and sub(whole, math.max(last, #whole - 700)) or sub(whole, -8)
    if last and told.unasked then chunk:setBytes(without_usage(text)) end
  end
  kept = handle:streamInfo():dynamicMetadata()
  kept:set(SPACE, "prompt_tokens", prompt)
  kept:set(SPACE, "completion_tokens", completion)
end
