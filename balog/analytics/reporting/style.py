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
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.5rem }
header { padding-top: 2.25rem }
h1 { font-size: 1.75rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .4rem; font-weight: 650 }
h2 { font-size: 1.125rem; letter-spacing: -.01em; margin: 0 0 .75rem; font-weight: 650 }
a { color: inherit; text-decoration-color: var(--muted); text-underline-offset: .15em }
a:hover { text-decoration-color: currentColor }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px }
main:focus, section:focus { outline: 0 }
.skip { position: absolute; left: -99rem; background: var(--card); padding: .5rem 1rem; z-index: 1 }
.skip:focus { left: .5rem; top: .5rem }
.where { margin: 0; overflow-wrap: anywhere }
.note { margin: .35rem 0 0; color: var(--muted); font-size: .875rem; overflow-wrap: anywhere }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; margin: 1.1rem 0 0; padding: .6rem 0 }
nav ul { border-block: 1px solid var(--rule); font-size: .875rem }
nav a { text-decoration: none }
nav a:hover { text-decoration: underline }
section { margin-top: 2.5rem; scroll-margin-top: 1rem }
#health { margin-top: 1.75rem }
#health .note { margin: -.4rem 0 .9rem }
.facts { display: flex; flex-wrap: wrap; margin: 1.1rem 0 0; gap: 1px; background: var(--rule) }
.facts { border: 1px solid var(--rule); border-radius: 8px; overflow: hidden }
.facts div { flex: 1 1 22%; padding: .7rem 1rem .6rem; background: var(--card) }
dt { color: var(--muted); font-size: .8125rem }
dd { margin: 0 }
.facts dd { font-size: 1.5rem; line-height: 1.25; font-weight: 600; letter-spacing: -.02em }
.facts small { display: block; font-size: .8125rem; font-weight: 400; letter-spacing: 0; min-height: 1.2rem }
.facts small { color: var(--muted) }
.facts .bad small { color: var(--bad) }
.facts .good small { color: var(--good) }
.facts i { font-style: normal; font-size: .6875rem }
.findings { list-style: none; margin: 0; padding: 0 }
.findings li { padding: .3rem 0 .3rem 1.1rem; position: relative; overflow-wrap: anywhere }
.findings li::before { content: ""; position: absolute; left: 0; top: .78em; width: .5rem; height: .5rem }
.findings li::before { background: var(--warning); border-radius: 50% }
.findings .new_failure::before, .findings .failed_runs::before { background: var(--error) }
.findings small, td small, .choice small { color: var(--muted) }
.calm { margin: 0; padding-left: 1.1rem; position: relative }
.calm::before { content: ""; position: absolute; left: 0; top: .5em; width: .5rem; height: .5rem }
.calm::before { background: var(--good); border-radius: 50% }
figure { margin: 0 0 1rem }
figure svg { display: block; max-width: 100%; height: auto; overflow: visible }
figure text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif }
.narrow { display: none }
.scroll { overflow-x: auto; border: 1px solid var(--rule); border-radius: 8px; background: var(--card) }
table { border-collapse: collapse; width: 100%; font-size: .875rem }
th, td { padding: .35rem .65rem; text-align: left; vertical-align: baseline; white-space: nowrap }
thead th { color: var(--muted); font-weight: 500; border-bottom: 1px solid var(--rule) }
tbody th { font-weight: 500; white-space: normal; overflow-wrap: anywhere; min-width: 11rem }
#failures tbody th { min-width: 20rem; max-width: 34rem }
tbody tr + tr > * { border-top: 1px solid color-mix(in srgb, var(--rule) 60%, transparent) }
tbody tr:hover { background: color-mix(in srgb, var(--rule) 30%, transparent) }
tbody tr:target { background: color-mix(in srgb, var(--focus) 14%, transparent); scroll-margin-top: 4rem }
.number { text-align: right }
.bar { background: linear-gradient(to left, color-mix(in srgb, var(--info) 18%, transparent) var(--part), #0000 0) }
td.bad { color: var(--bad); font-weight: 600 }
td.bad a { font-weight: 400 }
code { font: .8125rem/1.4 ui-monospace, SFMono-Regular, Menlo, "Liberation Mono", monospace }
.new { background: var(--bad); color: var(--card); border-radius: 3px; padding: 0 .35rem; font-size: .75rem }
.outcome i { font-style: normal; font-weight: 700; display: inline-block; width: 1em; text-align: center }
.succeeded .outcome i { color: var(--good) }
.failed .outcome { color: var(--bad); font-weight: 600 }
.why { display: block; white-space: normal; max-width: 13rem }
.unknown .outcome i { color: var(--warning) }
details { font-weight: 400 }
summary { cursor: pointer; color: var(--muted); font-size: .8125rem; width: fit-content }
details > .scroll { margin-top: .5rem; max-height: 26rem; overflow-y: auto }
.more { display: grid; grid-template-columns: auto 1fr; gap: .1rem .75rem; margin: .25rem 0; font-size: .8125rem }
.more dd { overflow-wrap: anywhere; white-space: pre-wrap }
.choice { border: 0; padding: 0; margin: 0 0 .6rem; font-size: .875rem }
.choice { display: flex; flex-wrap: wrap; gap: .2rem 1rem }
.choice legend { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.choice label { cursor: pointer }
.choice input { accent-color: var(--focus); margin: 0 .2rem 0 0; vertical-align: -.1em }
#runs:has(#only-succeeded:checked) tbody tr:not(.succeeded),
#runs:has(#only-failed:checked) tbody tr:not(.failed),
#runs:has(#only-unknown:checked) tbody tr:not(.unknown) { display: none }
.empty { margin: 3rem 0; color: var(--muted) }
footer { margin-top: 3rem; padding-bottom: 2.5rem; color: var(--muted); font-size: .8125rem }
footer p { border-top: 1px solid var(--rule); padding-top: 1rem }
@media (max-width: 44rem) {
  header, main, footer { padding-inline: 1rem }
  header { padding-top: 1.5rem }
  h1 { font-size: 1.5rem }
  .facts div { flex-basis: 45%; padding: .6rem .75rem .5rem }
  .facts dd { font-size: 1.25rem }
  section { margin-top: 2rem }
  .wide { display: none }
  .narrow { display: block }
  th, td { padding-inline: .6rem }
  tbody th { min-width: 9rem }
  #runs tbody th { min-width: 11rem }
  #failures tbody th { min-width: 15rem }
}
@media print {
  body { background: none; font-size: 10pt }
  nav, .skip, .choice { display: none }
  .scroll { overflow: visible; border: 0 }
  table { font-size: 8pt }
  tr, figure, .facts div { break-inside: avoid }
}
"""
