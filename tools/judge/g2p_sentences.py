#!/usr/bin/env python3
"""Test sentences for the English front end, made from a seed: names, numbers, dates, money, units, addresses, and
ordinary words in ordinary sentences.

usage: g2p_sentences.py COUNT [SEED] > sentences
       g2p_sentences.py --prose COUNT [SEED] < running text > sentences      a random choice of a text's sentences
"""
import random
import re
import sys

FIRST = """Alice Robert Maria James Elizabeth William Sarah Thomas Emma Daniel Olivia Michael Grace Henry Julia Samuel
Charlotte Benjamin Hannah George Victoria Edward Margaret Peter Susan Oliver Rachel Anthony Laura Philip Helen Patrick
Diana Simon Rebecca Martin Alexandra Stephen Caroline Douglas""".split()
LAST = """Smith Johnson Miller Thompson Anderson Williams Harrison Mitchell Campbell Roberts Edwards Turner Phillips Parker
Collins Stewart Morris Murphy Bailey Cooper Richardson Howard Peterson Watson Brooks Bennett Russell Griffin Hughes
Fletcher Spencer Wallace Lawrence Chapman Whitaker Zielinski Okonkwo Vasquez Nakamura Lindqvist Ferreira Dubois""".split()
PLACE = """London Paris Chicago Boston Berlin Toronto Sydney Madrid Dublin Vienna Seattle Denver Houston Atlanta Kyoto
Lisbon Oxford Cambridge Manchester Edinburgh Geneva Milan Naples Athens Cairo Nairobi Mumbai Beijing Ontario Texas""".split()
NOUN = """committee garden engine river teacher hospital kitchen market letter window doctor painting station village
company government library machine captain question morning winter mountain garden journey bridge castle farmer
professor scientist manager student newspaper restaurant concert airport highway computer telephone photograph museum
island weather history language business family minister president soldier""".split()
ADJECTIVE = """beautiful quiet heavy ancient narrow generous ordinary brilliant nervous curious wooden expensive enormous
foreign gentle modern distant frozen careful dangerous familiar successful terrible wonderful old-fashioned well-known
half-open good-natured""".split()
VERB = """visited described remembered followed questioned painted opened promised watched discovered considered mentioned
received delivered avoided examined improved accepted borrowed celebrated""".split()
MONTH = "January February March April May June July August September October November December".split()
TITLE = "Mr. Mrs. Dr. Prof. Capt. Gen. Sen. Rev.".split()
UNIT = "km kg mph GHz ml mm MB hours minutes percent % °C miles dollars".split()
ACRONYM = "NASA FBI BBC USA NATO CIA UNESCO IBM PDF HTML".split()


def number(r):
    return r.choice([str(r.randint(0, 99)), str(r.randint(100, 999)), f"{r.randint(1000, 9999999):,}",
                     f"{r.randint(0, 99)}.{r.randint(0, 99)}", f"{r.randint(1, 31)}"])


def date(r):
    y, m, d = r.randint(1800, 2060), r.randint(1, 12), r.randint(1, 28)
    return r.choice([f"{y}-{m:02}-{d:02}", f"{m}/{d}/{y}", f"{MONTH[m - 1]} {d}, {y}", f"{d} {MONTH[m - 1]} {y}",
                     f"{MONTH[m - 1]} {d}", str(y), f"the {y // 10 * 10}s"])


def clock(r):
    return r.choice([f"{r.randint(1, 12)}:{r.randint(0, 59):02} {r.choice(['am', 'pm', 'a.m.', 'p.m.'])}",
                     f"{r.randint(0, 23)}:{r.randint(0, 59):02}", f"{r.randint(1, 12)} {r.choice(['am', 'pm'])}"])


def money(r):
    sign = r.choice("$£€")
    return r.choice([f"{sign}{r.randint(1, 999)}", f"{sign}{r.randint(0, 99)}.{r.randint(0, 99):02}",
                     f"{sign}{r.randint(1, 99)} million", f"{sign}{r.randint(1, 9)}.{r.randint(1, 9)}bn",
                     f"{sign}{r.randint(1000, 99999):,}"])


def sentence(r):
    name = f"{r.choice(FIRST)} {r.choice(LAST)}"
    noun, other, adjective, verb, place = r.choice(NOUN), r.choice(NOUN), r.choice(ADJECTIVE), r.choice(VERB), r.choice(PLACE)
    forms = [
        f"{name} {verb} the {adjective} {noun} in {place}.",
        f"On {date(r)}, {r.choice(TITLE)} {r.choice(LAST)} {verb} a {noun} near {place}.",
        f"The {noun} costs {money(r)}, but the {other} costs only {money(r)}.",
        f"It was {clock(r)} when the {adjective} {noun} {verb} {number(r)} {other}s.",
        f"About {number(r)} {r.choice(UNIT)} of the {noun} and {number(r)} of the {other} were {adjective}.",
        f"{r.choice(FIRST)}'s {noun} is the {r.randint(1, 130)}{'th'} {other} that {r.choice(ACRONYM)} {verb}.",
        f"Write to {r.choice(FIRST).lower()}@{noun}.org or see www.{other}.com/{adjective.split('-')[0]} before {date(r)}.",
        f"Call {r.randint(200, 999)}-{r.randint(200, 999)}-{r.randint(1000, 9999)} and ask for the {noun}, please!",
        f"Between {r.randint(1, 50)}-{r.randint(51, 99)} {other}s were {verb} by the {noun} of {place}; why?",
        f"Chapter {r.choice(['II', 'IV', 'VII', 'IX', 'XII'])} says that {r.choice(['Henry VIII', 'Louis XIV', 'George III'])} "
        f"{verb} the {noun}.",
        f"“I {r.choice(['think', 'hope', 'know'])} that {name} {verb} it,” said the {adjective} {noun}.",
        f"We need {r.randint(1, 9)} {r.randint(1, 3)}/4 cups, or {r.randint(1, 4)}/5 of a {noun}, at {r.randint(-20, 40)}°C.",
    ]
    return r.choice(forms)


def prose(text, count, r):
    paragraphs = re.split(r"\n\s*\n", text)
    found = []
    for paragraph in paragraphs:
        flat = " ".join(paragraph.replace("_", "").split())
        found += [s for s in re.split(r"(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)\s+(?=[A-Z\"])", flat) if 25 <= len(s) <= 300]
    return r.sample(found, min(count, len(found)))


def main():
    arguments = sys.argv[1:]
    is_prose = arguments[:1] == ["--prose"]
    if is_prose:
        arguments = arguments[1:]
    count = int(arguments[0])
    r = random.Random(int(arguments[1]) if len(arguments) > 1 else 1)
    lines = prose(sys.stdin.read(), count, r) if is_prose else [sentence(r) for _ in range(count)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
