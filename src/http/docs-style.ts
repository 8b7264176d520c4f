// The style sheet of GET /docs, inside the page: system fonts, light and dark, from phone width on. Its hash is in the
// page's Content-Security-Policy, so there are no style attributes anywhere.

export const DOCS_STYLE = `
:root { color-scheme: light dark; --back: #fbfaf8; --card: #ffffff; --ink: #1f2328; --soft: #59606a; --line: #dedad3;
  --mark: #a34a00; --on-mark: #ffffff; --code: #f3f0ea; --good: #1a6b3c; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15171a; --card: #1d2024; --ink: #e8e6e3; --soft: #a3a8b0; --line: #363a40;
    --mark: #ffab5c; --on-mark: #1d1206; --code: #26292e; --good: #7fd6a2; --bad: #ff9a91; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--back); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem 1rem; z-index: 1; }
header, main, footer { max-width: 54rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0; letter-spacing: -.02em; }
h1 span { color: var(--mark); }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 3rem 0 .75rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p { margin: .5rem 0 .75rem; max-width: 44rem; }
.lead { color: var(--soft); font-size: 1.1rem; }
a { color: var(--mark); text-underline-offset: .15em; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: 1rem 0 0; }
nav a { display: inline-block; padding: .25rem 0; }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; border-radius: .2rem; }
code, pre, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
:not(pre) > code { background: var(--code); padding: .1em .35em; border-radius: .25rem; overflow-wrap: anywhere; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: .5rem; padding: .9rem 1rem; margin: .5rem 0;
  overflow-x: auto; line-height: 1.5; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .8rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 400; }
td:first-child, td code { white-space: nowrap; }
td:nth-child(3) { min-width: 15rem; }
form, .card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1.25rem; }
fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
legend { font-weight: 600; padding: 0; margin-bottom: .25rem; }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr)); gap: 1rem; }
.fields + fieldset, fieldset + .fields, .fields + .fields { margin-top: 1.25rem; }
label { display: block; font-weight: 600; }
.field { display: flex; flex-direction: column; }
.field input { margin-top: auto; }
small, .hint { display: block; color: var(--soft); font-size: .85rem; line-height: 1.4; padding-bottom: .35rem; }
.checks { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; }
.checks label { font-weight: 400; display: flex; align-items: center; gap: .5rem; min-height: 2.2rem; }
input:not([type=checkbox]) { width: 100%; font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--soft); border-radius: .35rem; padding: .5rem .6rem; min-height: 2.75rem; }
input[type=checkbox] { width: 1.15rem; height: 1.15rem; accent-color: var(--mark); }
input[aria-invalid=true] { border-color: var(--bad); box-shadow: 0 0 0 1px var(--bad); }
button { font: inherit; font-weight: 600; border-radius: .35rem; padding: .55rem 1.1rem; min-height: 2.75rem; cursor: pointer;
  border: 1px solid var(--mark); background: var(--mark); color: var(--on-mark); }
button.plain { background: transparent; color: var(--mark); padding: .3rem .8rem; min-height: 2.25rem; font-size: .9rem; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin-top: 1.25rem; }
.fault { color: var(--bad); font-weight: 600; margin: 0; }
.fault:empty { display: none; }
.made { margin-top: 1.25rem; border-left: .3rem solid var(--good); }
.made h3:first-child { margin-top: 0; }
.row { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; }
.row h3, .row h4 { margin: 0; }
h4 { font-size: .95rem; }
ol { padding-left: 1.4rem; }
ol > li { margin: .9rem 0; }
[hidden] { display: none; }
@media (max-width: 40rem) {
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: auto 1fr; gap: .15rem .6rem; padding: .6rem .8rem; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td { padding: 0; border: 0; min-width: 0; }
  td code { white-space: normal; }
  td:nth-child(n+3) { grid-column: 1 / -1; min-width: 0; }
  td:nth-child(4) { color: var(--soft); }
  td:nth-child(4)::before { content: "Scope: "; }
}
footer { color: var(--soft); font-size: .9rem; margin-top: 3.5rem; padding-bottom: 2.5rem; }
@media (max-width: 30rem) { header, main, footer { padding-left: 1rem; padding-right: 1rem; }
  header { padding-top: 1.75rem; } h1 { font-size: 1.75rem; } form, .card { padding: 1rem; } }
`;
