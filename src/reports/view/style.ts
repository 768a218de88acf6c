/** The style of the page, in light and dark. Messages outside of the window are not laid out: long pages stay fluid. */
export const pageStyle = `
:root { color-scheme: light dark; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --box: #f6f8fa; --page: #fff;
  --blue: #0969da; --green: #1a7f37; --red: #cf222e; --added: #dafbe1; --removed: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --text: #d1d7e0; --muted: #9198a1; --line: #3d444d; --box: #212830;
  --page: #161b22; --blue: #4493f8; --green: #57ab5a; --red: #f47067; --added: #1b3325; --removed: #3d2226; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--text); background: var(--page);
  font: 15px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
.facts, .note, figcaption { color: var(--muted); font-size: .85rem; }
article { content-visibility: auto; contain-intrinsic-size: auto 12rem; margin: 1rem 0; }
article:target { outline: 2px solid var(--blue); outline-offset: 6px; }
article.user { background: var(--box); border: 1px solid var(--line); border-radius: 8px; padding: .1rem 1rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .3rem .7rem; }
details.thought { border: 0; padding: 0; color: var(--muted); }
summary { cursor: pointer; }
pre, code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
pre { background: var(--box); border-radius: 6px; padding: .6rem; overflow-x: auto; max-height: 30rem; }
.diff pre span { display: block; min-width: max-content; }
pre .added { background: var(--added); } pre .removed { background: var(--removed); } pre .place { color: var(--muted); }
summary .added { color: var(--green); } summary .removed, .failed { color: var(--red); }
.evidence { border-left: 3px solid var(--green); padding-left: .8rem; }
.task { border-left: 3px solid var(--line); padding-left: .8rem; }
figure { margin: .6rem 0; } svg { width: 100%; height: auto; }
svg rect { fill: var(--blue); } svg a:hover rect { fill: var(--red); } svg line { stroke: var(--line); }
svg text { fill: var(--muted); font-size: 11px; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2rem .5rem; }
`;
