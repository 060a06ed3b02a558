"""What a race says of the machine that it runs on."""

import subprocess


def machine() -> str:
    text = subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    flags = fields.get("Flags", "").split()
    widest = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if f in flags]
    name = fields.get("Model name", "unknown processor").strip()
    return f"{name} (family {fields.get('CPU family', '?').strip()}, model {fields.get('Model', '?').strip()}), " \
           f"{fields.get('CPU(s)', '?').strip()} CPUs, {', '.join(widest) or 'no AVX2'}"
