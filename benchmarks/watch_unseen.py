# ruff: noqa
# fmt: off
"""A year of runs of ten data pipelines with planted anomalies of volume, as JSON lines."""
import argparse, json, math, random
from datetime import date, datetime, timedelta, timezone
from functools import cache
from typing import Iterator

# weights (base 36) of the 24 local hours
HOURS = {"shop": "532111369ceghhgghjlnonjc", "office": "00000014akoqoilqpni94211", "flat": "1" * 24, "food": "420000012245bkf7669cqvqg", "world": "cbaabcdfhjlmnopqpomkihfd", "commute": "2111138km9899abccdhnic75", "market": "000000000zlgebcdjv100000", "play": "gc85325898889abbccfjnrso", "depot": "4321248cghhg9ehiihfc9886"}
DAYS = {"b2b": "lmmlj21", "cons": "hghimsr", "even": "1111111", "bank": "6555500", "sixday": "nllmna2", "play": "fffglsr", "mail": "3c4d521", "soft": "kkkkjgf"}  # Monday to Sunday
EASTER = {"2024-03-29", "2024-04-01", "2025-04-18", "2025-04-21", "2026-04-03", "2026-04-06"}
# pipeline, zone (+ = summer time), streams: name kind rows-per-run hours days month-rule holiday-factor cv
# kinds: inc since the cursor, win fixed interval, tick machine-made, file lands once a day, cap page limit,
#        look trailing week re-read, snap whole table, ref constant table
HOURLY = """shop_orders|+1|orders inc 420 shop cons bf .8 .06;order_lines inc 1150 shop cons bf .8 .07;refunds inc 7 office b2b - .4 .2 & web_events|+-5|page_views inc 48000 shop cons bf .9 .05;signups inc 65 shop soft - .8 .08 & helpdesk|+1|tickets inc 38 office b2b - .3 .1;ticket_events inc 340 office b2b - .3 .12 & crm_sync|+-5|contacts inc 140 office b2b - .25 .5;activities cap 260 office b2b - .25 .1;owners ref 184
payments|0|charges inc 2600 world cons first .9 .05;disputes inc .7 flat soft - 1 .2;payouts file 5200 flat bank - 0 .05 & plant_sensors|0|readings tick 72180 flat even - 1 0;devices ref 1203;alarms inc 1.6 flat soft - 1 .5 & food_delivery|+0|orders inc 900 food cons - 1.2 .06;courier_shifts inc 60 food cons - 1.1 .1;restaurants snap 3400 & ad_reports|+-8|campaign_stats look 9800 world soft - .9 .03;clicks win 5400 play cons bf .9 .08
scooters|+1|trips inc 640 commute soft - .7 .09;gps_pings inc 31000 commute soft - .7 .1;zones ref 57 & warehouse|+1|scans inc 5200 depot sixday bf .3 .07;shipments win 410 depot sixday bf .3 .08;stock_levels snap 21400 & brokerage|+-5|trades win 7400 market bank - 0 .13;fx_rates ref 168;account_changes inc 11 office b2b - .2 .3 & mobile_game|8|sessions inc 15500 play play - 1.1 .05;purchases inc 230 play play first 1.1 .1"""
DAILY = """payroll|+1|payslips inc 45 office b2b pay .3 .15;employees snap 6100 & erp_ledger|+1|postings inc 18500 office b2b eom .15 .06;invoices inc 760 office b2b first .3 .08;cost_centers ref 412 & bank_statements|0|transactions file 8900 flat bank eom 0 .06;accounts ref 36 & product_catalog|0|products snap 88000;price_changes inc 1900 office b2b - .4 .45
subscriptions|+-5|renewals inc 3100 world even first 1 .05;cancellations inc 85 world soft - .8 .1;customers snap 74000 & clinic_lab|+1|appointments win 1350 office b2b - .08 .05;results win 5100 depot sixday - .3 .06 & newsletter|+0|sends win 120000 office mail - .5 .07;unsubscribes win 260 shop mail - .6 .1 & fleet_fuel|+-6|fuel_cards inc 940 depot sixday - .3 .07;tolls inc 2300 depot sixday - .3 .06;vehicles ref 655"""
# stage, least and most seconds, text
ERRORS = [("connect", 2, 12, 'FATAL: password authentication failed for user "etl_reader"'), ("connect", 30, 33, "connection to server at 10.2.{a}.{b}, port 5432 failed: Connection timed out"), ("connect", 1, 6, "401 Client Error: Unauthorized (token expired)"), ("connect", 60, 95, "503 Server Error: Service Unavailable, gave up after 5 retries"), ("read", 20, 400, "429 Too Many Requests: retry after {a} s"), ("read", 890, 930, "ReadTimeout: no data received for 900 s"), ("read", 10, 200, "SSL SYSCALL error: EOF detected"), ("read", 15, 120, "JSONDecodeError: Expecting value: line {a} column {b}"), ("load", 40, 300, "No space left on device: /tmp/stage_{a}.parquet"), ("load", 60, 600, 'deadlock detected: process {a}{b} waits for ShareLock'), ("load", 30, 200, 'value too long for type character varying({a})'), ("load", 20, 90, "Killed (exit code 137, out of memory)")]
PAD = 240  # hours of history before the year


def poisson(r: random.Random, mu: float) -> int:
    """A Poisson count (normal approximation above 40)."""
    if mu > 40:
        return max(0, round(r.gauss(mu, math.sqrt(mu))))
    n, p, floor = 0, r.random(), math.exp(-mu)
    while p > floor:
        n, p = n + 1, p * r.random()
    return n


@cache
def day_factor(d: date, rule: str, holiday: float) -> float:
    """Calendar effects of a date: holidays, peaks of the month, Black Friday and Christmas shopping."""
    f, md = 1.0, (d.month, d.day)
    if md in ((1, 1), (5, 1), (12, 25), (12, 26)) or d.isoformat() in EASTER:
        f = holiday
    elif md == (12, 24) or d.month == 12 and d.day > 26 or md == (1, 2):
        f = (1 + holiday) / 2
    if rule == "first":
        f *= {1: 4.5, 2: 1.6}.get(d.day, 1)
    elif rule == "eom" and d.weekday() < 5:
        f *= {0: 2.8, 1: 1.8, 2: 1.3}.get(sum(x.month == d.month and x.weekday() < 5 for x in (d + timedelta(i) for i in range(1, 6))), 1)
    elif rule == "pay":
        f *= 40 if d == d.replace(day=25) - timedelta(max(0, d.replace(day=25).weekday() - 4)) else 1
    elif rule == "bf" and d.month in (11, 12):
        friday = date(d.year, 11, 1) + timedelta((3 - date(d.year, 11, 1).weekday()) % 7 + 22)
        f *= {-1: 1.3, 0: 1.9, 1: 1.45, 2: 1.35, 3: 1.5}.get((d - friday).days, 1.2 if d > friday and d.day < 21 else 1)
    return f


@cache
def local(t: datetime, zone: str) -> datetime:
    """Local time of a zone such as 8 or +-5 (the plus: with European summer time)."""
    def change(m: int) -> datetime:
        return datetime(t.year, m, 31, 1) - timedelta((date(t.year, m, 31).weekday() + 1) % 7)
    return t + timedelta(hours=int(zone.lstrip("+")) + (zone[0] == "+" and change(3) <= t < change(10)))


class Stream:
    """One stream: its cumulated intensity by the hour, or its table size."""

    def __init__(self, r: random.Random, spec: str, zone: str, day0: datetime, period: int, scale: float, growth: float) -> None:
        part = spec.split()
        self.name, self.kind, self.size, self.cv, self.period = part[0], part[1], float(part[2]) * scale, 0.0, period
        self.growth, self.left, self.limit = growth, 0, round(self.size * 1.7, -2)
        self.cum, self.special = [0.0], []
        self.flow = self.kind not in ("snap", "ref")
        if not self.flow:
            return
        due, land = 0, r.randrange(4, 9)
        hours, days = ([int(c, 36) for c in t[k]] for t, k in ((HOURS, part[3]), (DAYS, part[4])))
        hmean, dmean, consumer = sum(hours) / 24, sum(days) / 7, part[4] in ("cons", "play", "soft")
        self.cv = float(part[7])
        amp, peak = r.uniform(0, .15) * (self.cv > 0), r.randrange(365)
        step, when = r.choice((0, 0, 0, .3, .45, -.2)) * (self.cv > 0), r.uniform(1500, 8000)
        x, sd, growth = 0.0, self.cv * .5 if self.cv < .2 else .1, growth * r.uniform(.93, 1.07)
        for i in range(PAD + 24 * 367):
            h, t = i - PAD, local(day0 + timedelta(hours=i - PAD), zone)
            x = x if i % 24 else .7 * x + r.gauss(0, sd * .7)
            special = day_factor(t.date(), part[5], float(part[6]))
            rate = days[t.weekday()] / dmean * special * growth ** (h / 8760) * math.exp(x)
            rate *= 1 + amp * math.cos(2 * math.pi * (t.timetuple().tm_yday - peak) / 365)
            rate *= (1 + step / (1 + math.exp((when - h) / 90))) * self.size / (24 if self.kind == "file" else period)
            if self.kind == "file":  # the whole day in one delivery, at times an hour later than usual
                due = land + (period == 1 and r.random() < .06) if t.hour == 0 else due
            rate *= 24 * (t.hour == due) if self.kind == "file" else hours[(t.hour - (consumer and t.weekday() > 4)) % 24] / hmean
            self.cum.append(self.cum[-1] + rate)
            self.special.append(abs(special - 1) > .25)

    def mean(self, a: float, b: float) -> float:
        """Expected rows between two times (hours since the start of the year)."""
        look, whole = self.kind == "look", self.kind == "file"  # a file is there entirely once its hour has begun
        ends = [(int(t + PAD), 1.0 if whole else (t + PAD) % 1) for t in (b - 168 if look else a, b)]
        lo, hi = (self.cum[i] + f * (self.cum[i + 1] - self.cum[i]) for i, f in ends)
        return max(0.0, hi - lo) / (168 / self.period if look else 1)

    def visible(self, a: float, b: float, factor: float) -> bool:
        """Whether an engineer could see these rows multiplied by the factor."""
        mu, cv2 = self.mean(a, b) if self.flow else 0.0, self.cv ** 2 * 1.25 + .002
        if self.kind == "cap" or mu < 30 or self.special[int(a + PAD)] or self.special[int(b + PAD)]:
            return not self.flow
        return cv2 < .1 and self.kind != "file" if factor == 0 else abs(math.log(factor)) / math.sqrt(cv2 + 1 / (mu * min(1, factor))) > 5

    def rows(self, r: random.Random, a: float, b: float, shared: float, factor: float, commit: bool) -> int:
        """Rows that a run reads."""
        if self.kind == "ref":
            self.size += r.choice((-1, 1, 1, 2)) * max(1, round(self.size * .004)) * (r.random() < self.period * 5 / 8760)
        elif self.kind == "snap":
            churn = self.size * self.period / 8760
            self.size = max(1, self.size + poisson(r, churn * (.2 + max(0, self.growth - 1))) - poisson(r, churn * (.2 + max(0, 1 - self.growth))))
        if not self.flow:
            return round(round(self.size) * factor)
        mu = self.mean(a, b) * factor
        if self.kind in ("tick", "look"):
            return round(mu * (1 - abs(r.gauss(0, .004))))
        n = poisson(r, mu * shared * r.gammavariate(1 / self.cv ** 2, self.cv ** 2)) + self.left
        limit = int(self.limit) if self.kind == "cap" else n
        self.left = max(0, n - limit) if commit else self.left
        return min(n, limit)


def runs(seed: int) -> Iterator[dict]:
    """The runs of ten pipelines over a year, by start."""
    r = random.Random(seed)
    day0 = datetime(2024, 1, 1) + timedelta(weeks=r.randrange(105))
    pipes, out = [], []
    for period, table, k in ((1, HOURLY, 6), (24, DAILY, 4)):
        for line in r.sample(table.replace(" & ", "\n").split("\n"), k):
            name, zone, specs = line.split("|")
            scale, growth = math.exp(r.gauss(0, .35)), r.choice((r.uniform(.72, .95), r.uniform(.97, 1.15), r.uniform(1.3, 2.2)))
            streams = [Stream(r, s, zone, day0, period, scale, growth) for s in specs.split(";")]
            at = r.choice((0, 0, 0, 5, 15, 30)) / 60 + (r.randrange(1, 8) if period == 24 else 0)
            mode, odd, slots = r.uniform(-10, 45), r.uniform(.001, .004) * (1 if period == 1 else 2), []
            for i in range(365 * 24 // period):
                luck, due = r.random(), i * period + at
                late = r.uniform(1080, 1380) if luck < 2.2 * odd else 0
                if luck > odd:  # otherwise skipped
                    slots.append({"due": due, "t": due + (r.triangular(-40, 120, mode) + late) / 3600, "error": None, "plant": None})
            pipes.append((name, period, streams, slots))
    weights, failures, goal = [3] * 6 + [1] * 4, 0, r.randint(27, 33)
    while failures < goal:  # singly and in short series
        _, period, _, slots = r.choices(pipes, weights)[0]
        i, error = r.randrange(len(slots) - 5), r.choice(ERRORS)
        for slot in slots[i:i + r.choice((1, 1, 1, 1, 2, 2, 3, 4) if period == 1 else (1, 1, 1, 2))]:
            failures, slot["error"] = failures + (slot["error"] is None), error
    for _, period, _, slots in pipes:
        cursor = slots[0]["t"] - period
        for slot in slots:
            slot["from"], cursor = cursor, cursor if slot["error"] else slot["t"]
    planted, goal = 0, r.randint(62, 78)
    while planted < goal:
        _, period, streams, slots = r.choices(pipes, weights)[0]
        i, length = r.randrange(len(slots)), r.choice((1, 1, 1, 2, 2, 3, 4) if period == 1 else (1, 1, 1, 2))
        gap, factor = 30 if period == 1 else 6, r.choice((0, 0, r.uniform(.42, .54), r.uniform(.06, .14), r.uniform(1.9, 2.3), r.uniform(4.3, 6)))
        hit = streams if len(streams) > 1 and r.random() < .3 else [r.choice(streams)]
        rare = not hit[0].flow and r.random() < .5  # tables break less often
        if rare or slots[i]["due"] < 60 * 24 or any(s["plant"] for s in slots[max(0, i - gap):i + gap]):
            continue
        for j, slot in enumerate(slots[i:i + length]):
            if slot["error"] or abs((slot["t"] - slot["from"]) / period - 1) > .15 or not all(s.visible(*window(s, slot, period), factor) for s in hit):
                break
            slot["plant"], planted = (hit, factor), planted + (j == 0)
    for name, period, streams, slots in pipes:
        base, speed, wave = math.exp(r.gauss(2.3, .6)), math.exp(r.gauss(6.7, .7)), 0.0
        for slot in slots:
            wave = .6 * wave + r.gauss(0, .03)
            error, (hit, factor) = slot["error"], slot["plant"] or ([], 1.0)
            counts = {s.name: s.rows(r, *window(s, slot, period), math.exp(wave), factor if s in hit else 1.0, not error) for s in streams}
            seconds = base * r.lognormvariate(0, .2) + sum(counts.values()) / speed * r.lognormvariate(0, .12)
            seconds += r.uniform(20, 200) if r.random() < .015 else 0  # a busy source or a throttled API
            if error:
                seconds = r.uniform(error[1], error[2]) + (seconds if error[0] == "load" else 0)
                keep = {"connect": 0, "read": r.randint(1, len(streams)), "load": len(streams)}[error[0]]
                counts = dict(list(counts.items())[:keep])
                counts |= {streams[keep - 1].name: int(counts[streams[keep - 1].name] * r.random())} if error[0] == "read" else {}  # broke off
            kind = "zero" if factor == 0 else "drop" if factor < 1 else "surge"
            out.append({"pipeline": name, "started": (day0 + timedelta(hours=slot["t"])).replace(tzinfo=timezone.utc).isoformat(timespec="microseconds"),
                        "seconds": round(seconds, 3), "ok": not error, "error": error and error[3].format(a=r.randint(10, 99), b=r.randint(10, 99)),
                        "streams": counts, "anomaly": {"stream": hit[0].name if len(hit) == 1 else None, "kind": kind} if hit else None})
    yield from sorted(out, key=lambda run: run["started"])


def window(s: Stream, slot: dict, period: int) -> tuple[float, float]:
    """The time that a stream's run reads: a fixed interval, or since the last good run."""
    return (slot["due"] - period, slot["due"]) if s.kind == "win" else (slot["from"], slot["t"])


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--seed", type=int, default=7)
    print(*map(json.dumps, runs(cli.parse_args().seed)), sep="\n")
