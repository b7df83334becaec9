-- Where a request goes, once its body is here whole: to its model's group, or back with what is wrong. admission.lua has seen
-- whose key it is and which model the body names; between the two stands Envoy's own buffer.
local sub, format = string.sub, string.format

local MOST, TURNS = 32 * 1024 * 1024, 10 -- bytes of the log's file, and seconds between two looks at it
local turned = 0
local up, looked = {}, 0 -- of each group, whether its engine is, and when that was asked

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
  local head = {[":status"] = "200", ["content-type"] = "application/json"}
  if one then
    one = one:gsub("%%2[Ff]", "/")
    if models[one] and opens(who, one) then return handle:respond(head, shown(one) .. "\n") end
    return refuse(handle, "404", "model_not_found", "no model is called " .. one)
  end
  local entries = {}
  for _, id in ipairs(names(who)) do entries[#entries + 1] = shown(id) end
  handle:respond(head, '{"object": "list", "data": [' .. table.concat(entries, ", ") .. "]}\n")
end

-- What models were asked is in a file: one that is full is the older one from now on, and the older one is gone.
local function turn(handle)
  local now = handle:timestamp(EnvoyTimestampResolution.MILLISECOND) / 1000
  if now - turned < TURNS then return end
  turned = now
  local path = handle:virtualHost():metadata():get("log")
  local file = io.open(path)
  if not file then return end
  local size = file:seek("end")
  file:close()
  if size < MOST then return end
  os.rename(path, path .. ".1")
  handle:httpCall("router-itself", {[":method"] = "POST", [":path"] = "/reopen_logs", [":authority"] = "router"}, "", 1000, true)
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if refresh_models(handle) then looked = 0 end
  local told = handle:streamInfo():dynamicMetadata():get(SPACE) or {}
  local who = told.who
  if not who then return end -- the page's; nobody else comes here without one
  local path, method = headers:get(":path"):match("^[^?]*"), headers:get(":method")
  local lists = path:sub(1, 10) == "/v1/models"
  if lists and method == "GET" then
    return list(handle, who, path, handle:timestamp(EnvoyTimestampResolution.MILLISECOND) / 1000)
  end
  if lists or method ~= "POST" then
    return refuse(handle, "405", "method_not_allowed", (lists and "GET" or "POST") .. " is what is asked here")
  end
  if told.too_long then
    return refuse(handle, "413", "too_long", format("a body has %d bytes at most", told.too_long))
  end
  if told.full then
    return refuse(handle, "503", "router_full", "as much is on its way as has room here", {["retry-after"] = "5"})
  end
  if told.crowd then
    return refuse(handle, "429", "too_many_at_once",
      format("%d requests at once are one key's share of %s", told.crowd, told.asked), {["retry-after"] = "5"})
  end
  if told.asked == "" then
    return refuse(handle, "400", "no_model",
      'the body is no JSON object with "model": "NAME" in it, once; served here: ' .. table.concat(names(who), ", "))
  end
  local model = models[told.asked]
  if not model or not opens(who, told.asked) then
    return refuse(handle, "404", "model_not_found",
      format("no model is called %s; served here: %s", told.asked:sub(1, 200), table.concat(names(who), ", ")))
  end
  headers:replace("content-length", format("%d", told.length)) -- it is all here, also what came in chunks
  headers:remove("transfer-encoding")
  headers:replace("x-sparkloom-group", model.group)
  if told.streams and model.sleeps then headers:replace("x-sparkloom-stream", "true") end -- its waker holds it longer
  handle:streamInfo():dynamicMetadata():set(SPACE, "model", model.id)
  turn(handle)
end
