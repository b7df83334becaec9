-- Before a body is read: whose key it is, and whether there is room for so long a request. What router.lua counts of those
-- who are turned away here it reads in the request's metadata; the two share no table.
local bit = require("bit")
local band, bxor, bnot, ror, rshift, lshift = bit.band, bit.bxor, bit.bnot, bit.ror, bit.rshift, bit.lshift
local byte, char, format, sub = string.byte, string.char, string.format, string.sub

local SPACE = "sparkloom"
local SHORT = 64 * 1024
local version, keys = nil, {} -- of the last table that could be read; before the first one nobody has a key
local room, longest = 0, 0 -- for bodies that are here at a time, and for one

-- SHA-256 -------------------------------------------------------------------------------------------------------------

local ROUNDS = {}
for word in ([[
  428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 d807aa98 12835b01 243185be 550c7dc3 72be5d74
  80deb1fe 9bdc06a7 c19bf174 e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da 983e5152 a831c66d
  b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967 27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e
  92722c85 a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070 19a4c116 1e376c08 2748774c 34b0bcb5
  391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3 748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2
]]):gmatch("%x+") do ROUNDS[#ROUNDS + 1] = tonumber(word, 16) end

local function sha256(text)
  local state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
  local bits = #text * 8
  text = text .. "\128" .. ("\0"):rep((55 - #text) % 64) .. "\0\0\0\0"
    .. char(rshift(bits, 24), band(rshift(bits, 16), 255), band(rshift(bits, 8), 255), band(bits, 255))
  local w = {}
  for block = 1, #text, 64 do
    for i = 1, 16 do
      local a, b, c, d = byte(text, block + i * 4 - 4, block + i * 4 - 1)
      w[i] = lshift(a, 24) + lshift(b, 16) + lshift(c, 8) + d
    end
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      w[i] = band(w[i - 16] + bxor(ror(x, 7), ror(x, 18), rshift(x, 3)) + w[i - 7]
        + bxor(ror(y, 17), ror(y, 19), rshift(y, 10)), -1)
    end
    local a, b, c, d, e, f, g, h = unpack(state)
    for i = 1, 64 do
      local one = h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g)) + ROUNDS[i] + w[i]
      local two = bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bxor(band(a, b), band(a, c), band(b, c))
      h, g, f, e, d, c, b, a = g, f, e, band(d + one, -1), c, b, a, band(one + two, -1)
    end
    for i, word in ipairs({a, b, c, d, e, f, g, h}) do state[i] = band(state[i] + word, -1) end
  end
  for i = 1, 8 do state[i] = bit.tohex(state[i]) end
  return table.concat(state)
end

-- Who asks ------------------------------------------------------------------------------------------------------------

local function person(line) -- of `sparkloom.onnode.key_table`: a hash and words; one that was taken away is nobody
  local hash, told = line:match("^(%x+) (.*)$")
  local who = {}
  for name, value in (told or ""):gmatch("(%a+)=(%S+)") do who[name] = value end
  if not who.name or who.taken then return nil end
  for _, name in ipairs({"requests", "tokens", "ends"}) do who[name] = tonumber(who[name]) end
  return hash, who
end

-- The file is looked at with each request, its first line tells whether the rest is another: a key that is taken away
-- opens nothing from the moment on at which the kubelet swaps the folder.
local function refresh(handle)
  local told = handle:virtualHost():metadata()
  room, longest = told:get("room"), told:get("longest")
  local file = io.open(told:get("keys_file"))
  if not file then return end
  local now = file:read("*l")
  if now and now ~= version then
    version, keys = now, {}
    for line in file:lines() do
      local hash, who = person(line)
      if hash then keys[hash] = who end
    end
  end
  file:close()
end

local function brought(headers) -- as OpenAI's clients send it (a scheme is in any case: RFC 9110), or Anthropic's
  local scheme, bearer = (headers:get("authorization") or ""):match("^(%a+) +(%S+)$")
  local key = scheme and scheme:lower() == "bearer" and bearer or headers:get("x-api-key")
  return key and #key <= 512 and key or nil
end

local function turn_away(handle, person, status, kind, code, message, more)
  local size = tonumber(handle:headers():get("content-length") or "")
  if size and size <= SHORT then handle:body() end -- answered while they send, some clients lose the answer
  handle:streamInfo():dynamicMetadata():set(SPACE, "turned", person)
  more[":status"], more["content-type"] = status, "application/json"
  handle:respond(more, format('{"error": {"message": "%s", "type": "%s", "code": "%s"}}\n', message, kind, code))
end

local function asker(handle) -- whoever is nobody is told so
  local key = brought(handle:headers())
  local who = key and keys[sha256(key)]
  local now = handle:timestamp(EnvoyTimestampResolution.MILLISECOND) / 1000
  if who and not (who.ends and now >= who.ends) then return who end
  local why = who and "the key of " .. who.name .. " has ended" or "no such key; write Authorization: Bearer KEY"
  turn_away(handle, who and who.name or "", "401", "authentication_error", "invalid_api_key", why,
    {["www-authenticate"] = "Bearer"})
end

-- Bodies that are here. Envoy holds one until its answer begins, and its overload manager looks too late: forty of 60 MB
-- come within a tenth of a second. A request that is gone without an answer is known by its handle, which nobody holds.
local sizes, number = {}, 0
local holders = setmetatable({}, {__mode = "k"})

local function held_now()
  local sum, alive = 0, {}
  for _, id in pairs(holders) do
    if sizes[id] then sum, alive[id] = sum + sizes[id], sizes[id] end
  end
  sizes = alive
  return sum
end

local function takes(handle, headers) -- the number under which a body is held, 0 of a short one; nil where there is no room
  local size = tonumber(headers:get("content-length") or "") or longest
  if size <= SHORT then return 0 end
  size = math.min(size, longest)
  for again = 1, 3 do -- what was finalized goes with the second collection
    if held_now() + size <= room then
      number = number + 1
      sizes[number], holders[handle] = size, number
      return number
    end
    if again < 3 then collectgarbage() end
  end
end

-- The page's files are for everybody, what it knows of the site for who has a key. A key is seen here and nowhere else,
-- but for what the page does for who may administer: it looks at the key once more, as others than this may reach it.
function envoy_on_request(handle)
  local headers = handle:headers()
  local path = headers:get(":path"):match("^[^?]*")
  if path == "/metrics" then return end
  refresh(handle)
  local who
  local page = path == "/" or sub(path, 1, 6) == "/page/"
  local acts = sub(path, 1, 10) == "/page/act/"
  if not page or acts or sub(path, 1, 11) == "/page/data/" then
    who = asker(handle)
    if not who then return end
    if acts and not ((tonumber(headers:get("content-length") or "") or longest) <= SHORT) then
      return turn_away(handle, who.name, "413", "invalid_request_error", "too_long", "that is longer than the page takes", {})
    end
    local kept = handle:streamInfo():dynamicMetadata()
    if not page then
      local taken = 0
      if headers:get(":method") == "POST" then taken = takes(handle, headers) end
      if not taken then
        return turn_away(handle, who.name, "503", "server_error", "router_full",
          "as much is on its way as has room here", {["retry-after"] = "5"})
      end
      kept:set(SPACE, "who", who)
      kept:set(SPACE, "held", taken)
    end
  end
  if headers:get(":method") == "GET" then -- who answers it would take one for the next request
    local sent = handle:body()
    if sent and sent:length() > 0 then
      return turn_away(handle, who and who.name or "", "413", "invalid_request_error", "a_body", "a GET brings none", {})
    end
  end
  for _, name in ipairs({"x-api-key", "cookie", not acts and "authorization" or nil}) do headers:remove(name) end
end

function envoy_on_response(handle)
  local told = handle:streamInfo():dynamicMetadata():get(SPACE)
  if told and told.held then sizes[told.held] = nil end
end
