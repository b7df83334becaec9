-- The models, as the routes' metadata has them: Envoy takes these anew from their file while streams go on, and `version` says
-- when they changed.
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

