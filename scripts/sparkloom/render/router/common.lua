-- What both scripts have: the models, as the routes' metadata has them (Envoy takes these anew from their file while streams
-- go on, and `version` says when they changed), who opens which, and answers of our own.
local SPACE = "sparkloom" -- of what one part tells another, and the access log
local version, models, called = nil, {}, {} -- `called`: all names of each group

local function refresh_models(handle) -- true where they are others than before
  local told = handle:virtualHost():metadata()
  local now = told:get("version")
  if not now or now == version then return false end
  version, models, called = now, told:get("models") or {}, {}
  for id, model in pairs(models) do
    called[model.group] = called[model.group] or {}
    table.insert(called[model.group], id)
  end
  return true
end

local function opens(who, id) -- a model that is listed under any of its names
  if not who.models then return true end
  for _, name in ipairs(called[models[id].group]) do
    if string.find("," .. who.models .. ",", "," .. name .. ",", 1, true) then return true end
  end
  return false
end

local function quoted(text)
  return '"' .. text:gsub('[%c"\\\127-\255]', function(c)
    return string.byte(c) < 128 and string.format("\\u%04x", string.byte(c)) or "?"
  end) .. '"'
end

local KINDS = {["401"] = "authentication_error", ["429"] = "rate_limit_error", ["503"] = "server_error"}

local function refuse(handle, status, code, message, headers)
  headers = headers or {}
  headers[":status"], headers["content-type"] = status, "application/json"
  handle:respond(headers, string.format('{"error": {"message": %s, "type": "%s", "code": "%s"}}\n', quoted(message),
    KINDS[status] or "invalid_request_error", code))
end

