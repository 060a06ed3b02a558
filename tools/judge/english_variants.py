#!/usr/bin/env python3
"""Judges the English front end on variants of its handed inputs: the templates of english_variants.tsv with other names,
numbers, units and words, chosen by a seed.  The expected reading is built beside the input, by this script alone.

  python3 tools/judge/english_variants.py --seed 1
  python3 tools/judge/english_variants.py --seed 2 --variants 10 --bar 95
  python3 tools/judge/english_variants.py --tsv > variants.tsv
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dry_run
import english_text

TEMPLATES = pathlib.Path(__file__).with_name("english_variants.tsv")
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen").split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
MONTHS = "january february march april may june july august september october november december".split()
IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}


def cardinal(value: int) -> str:
    if value < 20:
        return ONES[value]
    if value < 100:
        return TENS[value // 10] + ("" if value % 10 == 0 else " " + ONES[value % 10])
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = value % size
            return f"{cardinal(value // size)} {name}" + (f" {cardinal(rest)}" if rest else "")
    raise ValueError(value)


def ordinal(value: int) -> str:
    head, _, last = cardinal(value).rpartition(" ")
    last = IRREGULAR.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return f"{head} {last}".strip()


def suffix(value: int) -> str:
    return "th" if 10 <= value % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def year(value: int) -> str:
    if value % 1000 < 10:
        return cardinal(value)
    low = value % 100
    return cardinal(value // 100) + " " + ("hundred" if low == 0 else f"oh {ONES[low]}" if low < 10 else cardinal(low))


def one_by_one(digits: str, zero: str = "zero") -> str:
    return " ".join(zero if c == "0" else ONES[int(c)] for c in digits)


def in_name(value: int) -> str:  # "four fifty one"
    low = value % 100
    return ONES[value // 100] + " " + ("hundred" if low == 0 else f"oh {ONES[low]}" if low < 10 else cardinal(low))


def digits(length: int, first: str = "0123456789"):
    def pick(rng):
        text = rng.choice(first) + "".join(rng.choice("0123456789") for _ in range(length - 1))
        return text, one_by_one(text)
    return pick


def number(low: int, high: int, step: int = 1):
    def pick(rng):
        value = rng.randrange(low, high + 1, step)
        return str(value), cardinal(value)
    return pick


def words(text: str):
    """Alternatives: written, or written=spoken with _ for a space."""
    pairs = [(entry.split("=") * 2)[:2] for entry in text.split()]
    return lambda rng: tuple(part.replace("_", " ") for part in rng.choice(pairs))


def grouped(sign: str, low: int, high: int):
    def pick(rng):
        value = rng.randrange(low, high)
        return f"{value:,}".replace(",", sign), cardinal(value)
    return pick


def decimal(rng):
    whole, part = rng.randrange(1, 10), rng.randrange(1, 10)
    return f"{whole}.{part}", f"{cardinal(whole)} point {cardinal(part)}"


def a_year(low: int, high: int):
    def pick(rng):
        value = rng.randrange(low, high)
        return str(value), year(value)
    return pick


def decade(rng):
    value = rng.randrange(1800, 2021, 10)
    spoken = year(value)
    return str(value), spoken[:-1] + "ies" if spoken.endswith("y") else spoken + "s"


def cents(rng):
    value = rng.randrange(11, 100)
    return str(value), cardinal(value)


def zip_code(rng):
    text = "".join(rng.choice("0123456789") for _ in range(5))
    return text, one_by_one(text, "oh")


def jet(rng):
    value = rng.randrange(101, 1000)
    return str(value), in_name(value)


def an_ordinal(low: int, high: int):
    def pick(rng):
        value = rng.randrange(low, high)
        return f"{value}{suffix(value)}", ordinal(value)
    return pick


def month(rng):
    value = rng.randrange(1, 13)
    return str(value), MONTHS[value - 1]


def day_of_month(rng):
    value = rng.randrange(13, 32)
    return str(value), ordinal(value)


def two_digit_day(rng):
    value = rng.randrange(1, 31)
    return f"{value:02}", ordinal(value)


def minute(rng):
    value = rng.randrange(10, 60)
    return str(value), cardinal(value)


def exponent(rng):
    value = rng.randrange(4, 40)
    return str(value), ordinal(value)


DAYS = "Mon=Monday Tue=Tuesday Wed=Wednesday Thu=Thursday Fri=Friday Sat=Saturday Sun=Sunday"
SLOTS = {
    "int": number(2, 99), "small": number(2, 20), "digit": number(2, 9), "tens": number(20, 90, 10), "hundreds": number(200, 990),
    "low": number(2, 9), "high": number(11, 30), "hour": number(1, 12), "early": number(6, 11), "late": number(1, 5),
    "dec": decimal, "cents": cents, "thousands": grouped(",", 1000, 99999), "spaced": grouped(" ", 10000, 9999999),
    "year": a_year(1500, 2025), "oldyear": a_year(1010, 2025), "decade": decade, "zip": zip_code, "jet": jet,
    "ord": an_ordinal(1, 20), "month": month, "dayofmonth": day_of_month, "dayof": two_digit_day, "minute": minute,
    "exponent": exponent,
    "d2": digits(2), "d3": digits(3), "d4": digits(4, "123456789"), "d6": digits(6, "123456789"),
    "name": words("Anna Peter Maria Frank Laura Simon Helen Robert"),
    "deal": words("loan deal contract grant fine budget settlement project mistake house"),
    "bill": words("bill note coin ticket voucher stamp book toy"),
    "pay": words("salary bonus loan car boat job"),
    "scale": words("million billion"),
    "code": words("USD=U_S_dollars EUR=euros GBP=british_pounds JPY=japanese_yen CHF=swiss_francs CAD=canadian_dollars "
                  "AUD=australian_dollars INR=indian_rupees SEK=swedish_kronor MXN=mexican_pesos BRL=brazilian_reais "
                  "ZAR=south_african_rand NZD=new_zealand_dollars"),
    "sign": words("₹=rupees ₩=won £=pounds €=euros $=dollars ¥=yen ₪=shekels ₦=naira ₱=pesos ₫=dong"),
    "per": words("hr=hour mo=month day=day night=night yr=year wk=week kg=kilogram lb=pound person=person month=month GB=gigabyte"),
    "plural": words("people fans miles houses books dogs soldiers letters stars viewers"),
    "day": words(DAYS), "zone": words("EST=E_S_T PST=P_S_T GMT=G_M_T UTC=U_T_C CET=C_E_T EDT=E_D_T"),
    "stuff": words("oil salt sugar flour rain snow milk rice"),
    "vessel": words("cup glass bottle jar"),
    "shorttime": words("wks=weeks yrs=years hrs=hours mins=minutes secs=seconds mos=months"),
    "shortunit": words("gal=gallons tbsp=tablespoons tsp=teaspoons oz=ounces lbs=pounds qts=quarts"),
    "size": words("long wide tall deep high thick"), "direction": words("east west north south"),
    "var": words("y=Y z=Z n=N p=P q=Q k=K"),
    "unit": words("ms=milliseconds km=kilometers kg=kilograms cm=centimeters mph=miles_per_hour GB=gigabytes MHz=megahertz"),
    "formula": words("NaCl=N_A_C_L CaCO3=C_A_C_O_three H2SO4=H_two_S_O_four KCl=K_C_L CO2=C_O_two Fe2O3=F_E_two_O_three "
                     "C6H12O6=C_six_H_twelve_O_six NaHCO3=N_A_H_C_O_three MgO=M_G_O SiO2=S_I_O_two NH3=N_H_three LiOH=L_I_O_H"),
    "sharp": words("C F A G"),
    "library": words("Node=node Next=next Express=express"),
    "file": words("main notes index config report summary letter"),
    "ending": words("cpp=C_P_P txt=T_X_T sh=S_H html=H_T_M_L py=P_Y pdf=P_D_F rs=R_S md=M_D csv=C_S_V xml=X_M_L go=go zip=zip"),
    "when": words("today now tomorrow here"), "command": words("make build test echo watch find"),
    "site": words("bbc=B_B_C amazon=amazon itv=I_T_V times=times guardian=guardian"),
    "dial": words("Call Dial Ring Phone"),
    "emergency": words("911=nine_one_one 112=one_one_two 999=nine_nine_nine 311=three_one_one"),
    "secret": words("code PIN=pin password passcode"),
    "city": words("Chicago Boston Denver Seattle Austin Portland"), "state": words("IL=I_L MA=M_A CO=C_O WA=W_A TX=T_X OR=O_R"),
    "label": words("Fahrenheit Cessna Airbus Nokia"),
    "count": words("1=first 2=second"), "book": words("Corinthians Samuel Kings Chronicles Timothy Peter"),
    "wide": words("pizza screen film pipe lens board"), "run": words("run walk ride bag box"),
    "broken": words("infor-\\nmation=information govern-\\nment=government agree-\\nment=agreement build-\\ning=building "
                    "impor-\\ntant=important moun-\\ntain=mountain"),
}
SINGULAR = {"feet": "foot"}


def singular(plural: str) -> str:
    first, _, rest = plural.partition(" ")
    first = SINGULAR.get(first, first)
    first = first if first.endswith("hertz") else first.removesuffix("s")
    return f"{first} {rest}".strip()


def fill(template: dict, rng: random.Random) -> dict:
    chosen: dict[str, tuple[str, str]] = {}

    def choose(name: str) -> tuple[str, str]:
        if name not in chosen:
            slot = name if name in SLOTS else re.sub(r"(\d|[a-d])$", "", name) if name[:-1] in SLOTS else None
            slot = slot or {"day2of": "dayof", "unitone": "unit"}.get(name)
            if slot is None:
                sys.exit(f"{TEMPLATES}: no slot is called {name}")
            taken = {value for key, value in chosen.items() if key.startswith(slot)}
            chosen[name] = SLOTS[slot](rng)
            for _ in range(20):
                if chosen[name] not in taken:
                    break
                chosen[name] = SLOTS[slot](rng)
        return chosen[name]

    slots = r"<([a-z]+\d?[a-z]*)>"
    written = re.sub(slots, lambda m: choose(m[1])[0], template["input"])
    if "unit" in chosen:
        chosen["unitone"] = ("", singular(chosen["unit"][1]))
    spoken = re.sub(slots, lambda m: choose(m[1])[1], template["expected"])
    return {"input": written, "expected": spoken, "kind": template["kind"]}


def make_cases(seed: int, variants: int, kind: str | None = None) -> list[dict]:
    with open(TEMPLATES, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    cases = []
    for row, values in enumerate(lines[1:]):
        template = dict(zip(lines[0], values))
        rng = random.Random(f"{seed} {row}")
        if kind in (None, template["kind"]):
            cases += [fill(template, rng) for _ in range(variants)]
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", type=int, default=5, help="of each template")
    parser.add_argument("--kind", help="only the templates of this kind")
    parser.add_argument("--tsv", action="store_true", help="print the cases and judge nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--bar", type=float, default=0, help="the least share that must be right, in percent")
    dry_run.add_arguments(parser)
    options = parser.parse_args()
    cases = make_cases(options.seed, options.variants, options.kind)
    if options.tsv:
        print("input\texpected\tkind", *("\t".join(case.values()) for case in cases), sep="\n")
        return
    readings = dry_run.read_all(options, [case["input"].replace("\\n", "\n") for case in cases])
    result = english_text.judge(cases, readings, english_text.read_respellings())
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        english_text.print_result(result)
    sys.exit(0 if 100 * result["right"] >= options.bar * result["of"] else 1)


if __name__ == "__main__":
    main()
