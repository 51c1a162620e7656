# ruff: noqa
# fmt: off
"""A year of data pipeline runs with planted volume anomalies, as JSON lines."""
import argparse, json, math
from calendar import monthrange
from datetime import date, datetime, timedelta, timezone
from random import Random
from typing import Any, Iterator, NamedTuple

PROFILES: dict[str, list[float]] = {  # weight of each local hour
    "office": [.02] * 6 + [.08, .3, .75, 1, 1.05, .95, .7, .9, 1, .95, .8, .45, .2, .1, .07, .05, .03, .02], "evening": [.45, .25, .14, .09, .08, .1, .2, .4, .6, .75, .85, .9, 1, .95, .9, .9, .95, 1.05, 1.2, 1.4, 1.5, 1.4, 1.1, .75],
    "meals": [.1, .05, .02, .01, .01, .02, .06, .15, .25, .35, .6, 1.2, 1.6, 1.1, .6, .5, .7, 1.2, 2, 2.2, 1.6, .9, .5, .25], "commute": [.2, .1, .06, .05, .1, .3, .8, 1.7, 1.9, 1.1, .8, .8, .9, .9, 1, 1.2, 1.7, 2, 1.5, 1, .8, .65, .5, .35], "global": [1 + .25 * math.sin((h - 9) / 24 * 2 * math.pi) for h in range(24)],
    "flat": [1.0] * 24, "shopfloor": [0] * 6 + [.9, 1, 1, .85, 1, 1, .6, 1, 1, .9, .8, .8, .8, .5, .8, .6] + [0] * 2, "drop_5h": [0] * 5 + [24] + [0] * 18, "drop_thrice": [0] * 7 + [8] + [0] * 5 + [8] + [0] * 5 + [8] + [0] * 4}
WEEKS = {"b2b": [1.05, 1.1, 1.08, 1.02, .9, .1, .07], "b2c": [.9, .87, .9, .95, 1.1, 1.35, 1.28], "flat": [1.0] * 7, "closed_sun": [1, .95, .97, 1, 1.15, 1.3, 0], "work": [1, 1.03, 1.04, 1.02, .97, .62, .52]}
ERRORS = ["connection refused: could not connect to server at {h}:5432", "401 Unauthorized: access token expired", "429 Too Many Requests: rate limit exceeded, retry after 3600 s", "503 Service Unavailable from https://{h}/v2/{s}",
          "ssl.SSLError: certificate verify failed: certificate has expired ({h})", "read timed out after 900 s on stream {s}", "canceling statement due to conflict with recovery while reading {s}", "disk full: could not write temporary file for {s}",
          "schema mismatch in {s}: column \"amount\" expected NUMERIC, got VARCHAR", "worker was OOM-killed (exit code 137) reading {s}"]


# base is rows an hour (flow, regular), rows (table, ref) or the ratio to the parent's rows; od is the relative sd of a run
Stream = NamedTuple("Stream", [("name", str), ("base", float), ("prof", str), ("week", str), ("od", float), ("kind", str), ("month", str), ("grow", tuple[float, float]), ("season", str), ("parent", str), ("cap", int)])


def S(name: str, base: float, prof: str = "flat", week: str = "flat", od: float = .08, kind: str = "flow", month: str = "", grow: tuple[float, float] = (-.05, .25), season: str = "", parent: str = "", cap: int = 10 ** 9) -> Stream:
    """A stream with the usual settings."""
    return Stream(name, base, prof, week, od, kind, month, grow, season, parent, cap)


HOURLY: dict[str, list[Stream]] = {"shop_orders": [S("orders", 420, "evening", "b2c", .1, season="xmas", grow=(.05, .4)), S("order_lines", 2.6, od=.03, parent="orders"), S("refunds", 6, "office", "work", .2, season="xmas")],
    "web_clickstream": [S("page_views", 48000, "evening", "b2c", .09, season="xmas"), S("sessions", .21, od=.03, parent="page_views")], "crm_sync": [S("contacts", 160, "office", "b2b", .2, season="b2b"), S("activities", 1900, "office", "b2b", .11, season="b2b"), S("pipeline_stages", 38, kind="ref")],
    "iot_telemetry": [S("readings", 21600, kind="regular", grow=(0, .15)), S("alarms", 1.4, od=.5), S("devices", 1800, kind="table", grow=(0, .15))], "card_payments": [S("transactions", 7400, "commute", "work", .06, month="payday", grow=(.1, .6)), S("chargebacks", .0011, od=.3, parent="transactions")],
    "helpdesk": [S("tickets", 11, "office", "work", .25, season="b2b"), S("messages", 4.2, od=.2, parent="tickets")], "food_delivery": [S("orders", 900, "meals", "b2c", .1, month="payday"), S("courier_pings", 11000, "meals", "b2c", .07), S("promo_codes", 25, "meals", "b2c", .4)],
    "app_events": [S("events", 130000, "global", "flat", .05, grow=(.2, .7)), S("crashes", .0006, od=.25, parent="events")], "partner_feed": [S("price_updates", 1500, "drop_thrice", "work", .12), S("acks", 60, "office", "b2b", .25)], "social_mentions": [S("mentions", 330, "evening", "flat", .2, cap=500, grow=(-.3, .1))],
    "plant_mes": [S("work_steps", 760, "shopfloor", "closed_sun", .08), S("scrap", .015, od=.3, parent="work_steps"), S("machines", 64, kind="ref")], "email_platform": [S("deliveries", 5200, "office", "work", .13, grow=(-.35, .1)), S("opens", 1500, "evening", "work", .1, grow=(-.35, 0))]}
DAILY: dict[str, list[Stream]] = {"billing": [S("invoices", 130, "office", "b2b", .08, month="first"), S("subscriptions", 41000, kind="table", grow=(.05, .3)), S("tax_rates", 112, kind="ref")], "hr_payroll": [S("employees", 2300, kind="table", grow=(-.06, .1)), S("time_entries", 420, "office", "b2b", .05, season="b2b"),
                   S("payslips", 96, kind="flow", od=.01, month="payroll", grow=(-.06, .1))], "erp_stock": [S("stock_levels", 184000, kind="table", grow=(-.02, .08)), S("movements", 1350, "office", "b2b", .1, month="end", season="b2b")],
    "ads_spend": [S("ad_stats", 340, "flat", "flat", .07, grow=(-.4, .1)), S("campaigns", 210, kind="table", grow=(-.2, .2))], "store_pos": [S("receipts", 2600, "meals", "closed_sun", .07, month="payday", season="xmas"), S("stores", 87, kind="ref")],
    "bank_statements": [S("bookings", 75, "drop_5h", "b2b", .12, month="end"), S("fx_rates", 31, kind="ref")], "clinic_visits": [S("visits", 95, "office", "b2b", .09, season="b2b"), S("lab_results", 2.3, od=.08, parent="visits"), S("incidents", .15, od=.4)]}


def poisson(rng: Random, mu: float) -> int:
    """Poisson count; normal approximation for large means."""
    if mu > 50:
        return max(0, round(rng.gauss(mu, math.sqrt(mu))))
    n, p, limit = 0, rng.random(), math.exp(-mu)
    while p > limit:
        n, p = n + 1, p * rng.random()
    return n


def calendar(s: Stream, d: date) -> float:
    """Factor of the month's peaks, holidays and seasons on a date."""
    left, pay = monthrange(d.year, d.month)[1] - d.day, date(d.year, d.month, 25)
    pay -= timedelta(max(0, pay.weekday() - 4))
    since, feast = (d - pay).days, (d.month, d.day) in {(1, 1), (5, 1), (12, 24), (12, 25), (12, 26), (12, 31)}
    f = {"first": {1: 9 if d.weekday() < 5 else 60, 2: 1.8}.get(d.day, 1),  # the billing batch does not rest at weekends
         "end": 1.9 if left == 0 else 1.4 if left == 1 or d.day == 1 else 1, "payroll": float(since == 0), "payday": 1.28 if 0 <= since <= 1 else 1.15 if 2 <= since <= 4 or d.day == 1 else 1}.get(s.month, 1.0)
    f *= {"b2b": .18, "work": .6}.get(s.week, 1) if feast and s.month != "payroll" else 1
    if s.season == "b2b":
        f *= .76 if d.month == 12 and d.day > 22 else 1 - .22 * math.exp(-(((d - date(d.year, 8, 9)).days / 14) ** 2))
    elif s.season == "xmas":
        friday = date(d.year, 11, 29) - timedelta((date(d.year, 11, 29).weekday() - 4) % 7)
        f *= 1 + .45 * math.exp(-(((d - date(d.year, 12, 14)).days / 10) ** 2)) + (.75 if 0 <= (d - friday).days <= 3 else 0)
        f *= .5 if (d.month, d.day) in {(12, 25), (1, 1)} else 1
    return f


def day_factors(rng: Random, s: Stream, start: date, shared: list[float]) -> tuple[list[float], list[bool]]:
    """Level of every day from -5 on, and whether the calendar makes the day special."""
    grow, phase, own, level, special = rng.uniform(*s.grow), rng.uniform(0, 6.28), 0.0, [], []
    for i in range(-5, 368):
        d = start + timedelta(i)
        own, cal = .5 * own + rng.gauss(0, .3 * s.od), calendar(s, d)
        year = .06 * math.sin(i / 365 * 6.283 + phase) if s.kind == "flow" else 0
        level.append(WEEKS[s.week][d.weekday()] * cal * math.exp(math.log1p(grow) * i / 365 + year + (own + s.od * shared[i + 5] if s.kind == "flow" else 0)))
        special.append(abs(cal - 1) > .25)
    return level, special


def schedule(rng: Random, period: int, fails: set[int]) -> Iterator[tuple[float, float, bool]]:
    """Slot and start (hours since the first midnight) and whether the run fails; skips, delays and retries included."""
    skip, at = 0, rng.choice([0, 0, 0, 5, 7, 15, 30]) / 60 + (rng.choice([1, 2, 3, 4, 5, 6, 18, 22]) if period == 24 else 0)
    for i in range(8760 // period):
        slot = i * period + at
        skip = skip - 1 if skip > 0 else rng.choice([1, 1, 1, 1, 2]) if i and rng.random() < (.0014 if period == 1 else .006) else 0
        wait = rng.triangular(-15, 30, 3) if rng.random() < .9 else rng.triangular(-40, 120, 20)
        begin = slot + (abs(wait) if i == 0 else wait) / 3600 + (rng.uniform(18, 23) / 60 if rng.random() < .004 else 0)
        if not skip or i in fails:
            yield slot, begin, i in fails
        if i in fails and period == 24 and i + 1 not in fails and rng.random() < .6:
            yield slot, begin + rng.uniform(.6, 2), False


def visible(mu: float, f: float, od: float) -> bool:
    """Whether mu rows times f stand out against counting noise and over-dispersion."""
    if f == 0:
        return mu >= 15 and math.log1p(mu * od * od) / (od * od) > 14
    return mu > 0 and abs(math.log(f)) > 4.5 * math.sqrt(od * od + 1 / mu) and mu * abs(f - 1) > (4.5 if f < 1 else 6) * math.sqrt(mu) and mu * max(f, 1) > 12


def mean(s: Stream, level: list[float], local: list[float], width: float, promos: dict[int, float]) -> float:
    """Expected rows of a flow over local hours, each standing for width hours."""
    prof, spiky, mu = PROFILES[s.prof], s.prof.startswith("drop"), 0.0
    for t in local:
        day, u = int(t // 24) + 5, t % 24 - (0 if spiky else .5)
        h, part = math.floor(u), 0 if spiky else u - math.floor(u)
        mu += level[day] * ((1 - part) * prof[h % 24] + part * prof[(h + 1) % 24]) * (promos.get(day, 1) if s.week == "b2c" else 1)
    return mu * s.base * width


def pipeline(rng: Random, name: str, streams: list[Stream], period: int, start: date, fails: set[int]) -> list[dict[str, Any]]:
    """All runs of one pipeline, without anomalies; keys beginning with _ are for planting."""
    size, zone, cursor = math.exp(rng.gauss(0, .4)), rng.choice([-8, -5, 0, 1, 1, 2, 5.5, 10]), rng.random() < .65
    shared, promos = [0.0], {rng.randrange(373): rng.uniform(1.1, 1.3) for _ in range(6)}
    while len(shared) < 373:
        shared.append(.6 * shared[-1] + rng.gauss(0, .45))
    dst = [zone in (-8, -5, 0, 1, 2) and date(d.year, 3, 28) <= d < date(d.year, 10, 27) for d in (start + timedelta(i - 5) for i in range(373))]
    levels = {s.name: day_factors(rng, s, start, shared) for s in streams}
    refs = {s.name: round(s.base * rng.uniform(.7, 1.3)) for s in streams}
    done, out, host = float("nan"), [], f"{name.replace('_', '-')}.internal"
    for slot, begin, fail in schedule(rng, period, fails):
        end = begin if cursor else slot // period * period
        low = end - period if not cursor or done != done else done
        rows, mus, odd, common = {}, {}, False, rng.gauss(0, .5)
        steps = max(1, round((end - low) * (2 if period == 1 else 1)))
        local = [t + zone + dst[int(t // 24) + 5] for t in (low + (k + .5) * (end - low) / steps for k in range(steps))]
        for s in streams:
            (level, special), day = levels[s.name], int(local[-1] // 24) + 5
            refs[s.name] += rng.choice([-1, 1, 1, 2]) if rng.random() < period / 1500 else 0
            if s.kind == "ref":
                mu = count = refs[s.name]
            elif s.kind == "table":
                mu = s.base * size * level[day]
                count = round(mu) + (poisson(rng, mu * 2e-5 + .2) if rng.random() < period / 24 else 0)
            elif s.parent:
                mu, count = mus[s.parent] * s.base, poisson(rng, rows[s.parent] * s.base * rng.gammavariate(s.od ** -2, s.od ** 2))
            else:
                mu = mean(s, level, local, (end - low) / steps, promos) * (size if s.base > 3 else 1)
                lost, wild = min(.08, rng.expovariate(120)), rng.gammavariate(s.od ** -2, s.od ** 2) * math.exp(common * s.od * .6)
                count = round(mu * (1 - lost)) if s.kind == "regular" else poisson(rng, mu * wild)  # regular: readings of devices
            mus[s.name], rows[s.name] = min(mu, s.cap), min(count, s.cap)
            odd = odd or special[day] or special[int(local[0] // 24) + 5]
        error = None
        if fail:
            again = out and out[-1]["error"] and rng.random() < .8  # a series has mostly one cause
            k, reached = rng.randrange(len(ERRORS)), rng.randrange(len(rows))
            error = out[-1]["error"] if again else ERRORS[k].format(h=host, s=streams[reached].name)
            at = next((i for i, s in enumerate(streams) if s.name in error.replace(host, "").replace(name, "")), -1)
            rows = {s.name: rows[s.name] if i < at else int(rows[s.name] * rng.random() * .9) for i, s in enumerate(streams) if i <= at}
        nominal = not fail and .93 < (end - low) / period < 1.07
        out.append({"pipeline": name, "started": begin, "seconds": 0.0, "ok": not fail, "error": error, "streams": rows, "anomaly": None, "_mus": mus, "_plain": nominal and not odd and begin > 60 * 24})
        done = done if fail else end
    return out


def plant(rng: Random, made: list[tuple[list[Stream], int, list[dict[str, Any]]]]) -> None:
    """Plant 60 to 80 anomalies of volume of one to a few runs each."""
    left = rng.randint(62, 78)
    while left:
        streams, period, out = rng.choice(made)
        s, f, whole = rng.choice(streams), rng.choice([0, 0, .5, .1, 2, 5]), len(streams) > 1 and rng.random() < .12
        for _ in range(40):
            n, gap = rng.choice([1, 1, 1, 2, 3, 4] if period == 1 else [1, 1, 1, 2]), 30 if period == 1 else 7
            j = rng.randrange(len(out) - n)
            clean = all(r["anomaly"] is None for r in out[max(0, j - gap):j + n + gap])
            noise = .005 if s.kind in ("ref", "table") else .02 if s.kind == "regular" else 1.25 * math.hypot(s.od, .5 * s.od)
            sizes = [min(r["_mus"][s.name], r["streams"].get(s.name, 0) * 1.3) for r in out[j:j + n]]
            if not clean or (f > 1 and s.cap < 10 ** 9) or not all(r["_plain"] and visible(m, f, noise) for r, m in zip(out[j:j + n], sizes)):
                continue
            for r in out[j:j + n]:
                r["anomaly"] = {"stream": None if whole else s.name, "kind": "zero" if f == 0 else "drop" if f < 1 else "surge"}
                scale = f * math.exp(rng.gauss(0, .04))
                r["streams"] = {k: round(v * scale) if whole or k == s.name else v for k, v in r["streams"].items()}
            left -= 1
            break


def runs(seed: int) -> Iterator[dict[str, Any]]:
    """The runs of a year of ten pipelines, ordered by start."""
    start = date(2024, 1, 1) + timedelta(7 * (rng := Random(seed)).randrange(105))
    picked = [(n, HOURLY[n], 1) for n in rng.sample(sorted(HOURLY), 6)] + [(n, DAILY[n], 24) for n in rng.sample(sorted(DAILY), 4)]
    fails, target = {n: set() for n, _, _ in picked}, rng.randint(27, 33)
    while sum(map(len, fails.values())) < target:
        name, _, period = rng.choice(picked + picked[:6])
        first = rng.randrange(3, 8760 // period - 8)
        fails[name] |= set(range(first, first + rng.choice([1, 1, 1, 2, 3, 5] if period == 1 else [1, 1, 2])))
    made = [(streams, period, pipeline(rng, n, streams, period, start, fails[n])) for n, streams, period in picked]
    plant(rng, made)
    for _, period, out in made:
        fixed, speed = rng.uniform(4, 40), rng.uniform(700, 6000)
        for r in out:
            work, slow = fixed + sum(r["streams"].values()) / speed, 900 if "timed out" in (r["error"] or "") else 0
            r["seconds"] = round(slow + work * rng.lognormvariate(0, .18) * (rng.uniform(1.5, 3) if rng.random() < .01 else 1), 3)
    for r in sorted((r for _, _, out in made for r in out), key=lambda r: r["started"]):
        stamp = (datetime(start.year, start.month, start.day, tzinfo=timezone.utc) + timedelta(hours=r["started"])).isoformat(timespec="microseconds").replace("+00:00", "Z")
        yield {k: stamp if k == "started" else v for k, v in r.items() if k[0] != "_"}


if __name__ == "__main__":
    (parser := argparse.ArgumentParser(description=__doc__)).add_argument("--seed", type=int, default=7)
    print(*map(json.dumps, runs(parser.parse_args().seed)), sep="\n")
