{
  match: { hardware: "dgx-spark", quantization: "nvfp4", strategy: "balanced" },
  env: ["SGLANG_ENABLE_SPEC_V2=1"],
  flags: [
    "--model-path nvidia/GLM-4.7-NVFP4",
    "--tp-size 4",
    "--quantization modelopt_fp4",
    "--reasoning-parser glm45",
    "--tool-call-parser glm47",
  ],
},
