"""How the page looks: light and dark, from a phone's width to a desk's, on paper too."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  --paper: #fcfbf9; --card: #ffffff; --ink: #21201d; --muted: #66635c; --rule: #e5e1d8; --focus: #2457c5;
  --debug: #b9b4a7; --info: #3f72b8; --warning: #d49a12; --error: #c63d2b; --critical: #7a1740; --none: #8d97a5;
  --good: #2b7a4b; --bad: #b0311f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #151618; --card: #1c1e21; --ink: #e9e6df; --muted: #a09c93; --rule: #33353a; --focus: #8fb4ff;
    --debug: #5d6068; --info: #6fa3e8; --warning: #e2b33f; --error: #ee6d59; --critical: #e0539a; --none: #8d97a5;
    --good: #6cc28e; --bad: #ff8a76;
  }
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%;
}
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.5rem }
header { padding-top: 3rem }
h1 { font-size: 1.9rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .4rem; font-weight: 650 }
h2 { font-size: 1.15rem; letter-spacing: -.01em; margin: 0 0 1rem; font-weight: 650 }
.where { margin: 0; overflow-wrap: anywhere }
.note { margin: .15rem 0 0; color: var(--muted); font-size: .875rem }
.facts { display: grid; grid-template-columns: repeat(4, 1fr); margin: 2rem 0 0; border-block: 1px solid var(--rule) }
.facts div { padding: 1rem 1.25rem; border-left: 1px solid var(--rule) }
.facts div:first-child { border-left: 0; padding-left: 0 }
dt { color: var(--muted); font-size: .875rem }
dd { margin: 0; font-size: 1.75rem; line-height: 1.25; font-weight: 600; letter-spacing: -.02em }
dd small { display: block; font-size: .8125rem; font-weight: 400; letter-spacing: 0; min-height: 1.25rem }
dd small { color: var(--muted) }
.facts .bad dd > data { color: var(--bad) }
section { margin-top: 3rem }
figure { margin: 0 0 1.25rem }
figure svg { display: block; max-width: 100%; height: auto; overflow: visible }
figure text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif }
.narrow { display: none }
.scroll { overflow-x: auto; border: 1px solid var(--rule); border-radius: 8px; background: var(--card) }
.scroll:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
table { border-collapse: collapse; width: 100%; font-size: .875rem }
th, td { padding: .45rem .75rem; text-align: left; vertical-align: baseline; white-space: nowrap }
thead th { color: var(--muted); font-weight: 500; border-bottom: 1px solid var(--rule) }
tbody th { font-weight: 500; white-space: normal; overflow-wrap: anywhere; min-width: 11rem }
tbody tr + tr > * { border-top: 1px solid color-mix(in srgb, var(--rule) 60%, transparent) }
tbody tr:hover { background: color-mix(in srgb, var(--rule) 30%, transparent) }
.number { text-align: right }
td.bad { color: var(--bad); font-weight: 600 }
code { font: .8125rem/1.4 ui-monospace, SFMono-Regular, Menlo, "Liberation Mono", monospace }
.outcome i { font-style: normal; font-weight: 700; display: inline-block; width: 1em; text-align: center }
.outcome.succeeded i { color: var(--good) }
.outcome.failed { color: var(--bad); font-weight: 600 }
.outcome.unknown i { color: var(--warning) }
.empty { margin: 3rem 0; color: var(--muted) }
footer { margin-top: 3.5rem; padding-bottom: 3rem; color: var(--muted); font-size: .8125rem }
footer p { border-top: 1px solid var(--rule); padding-top: 1rem }
@media (max-width: 44rem) {
  header, main, footer { padding-inline: 1rem }
  header { padding-top: 1.75rem }
  h1 { font-size: 1.6rem }
  .facts { grid-template-columns: 1fr 1fr }
  .facts div { padding: .75rem 0 .6rem; border-left: 0 }
  .facts div:nth-child(even) { padding-left: 1rem; border-left: 1px solid var(--rule) }
  .facts div:nth-child(n + 3) { border-top: 1px solid var(--rule) }
  dd { font-size: 1.4rem }
  section { margin-top: 2.25rem }
  .wide { display: none }
  .narrow { display: block }
  th, td { padding-inline: .65rem }
}
@media print {
  body { background: none; font-size: 10pt }
  .scroll { overflow: visible; border: 0 }
  section { break-inside: avoid-page }
}
"""
