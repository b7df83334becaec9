-- SHA-256, with the numbers of 32 bits that LuaJIT has.
local bit = require("bit")
local band, bxor, bnot, ror, rshift, lshift = bit.band, bit.bxor, bit.bnot, bit.ror, bit.rshift, bit.lshift
local byte, char = string.byte, string.char

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

