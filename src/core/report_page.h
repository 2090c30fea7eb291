// The page that a report is: a head, the data as JSON, a tail that draws it as SVG.
#pragma once

namespace spool {

constexpr const char* report_page_head = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>spool</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; background: #fff }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-bottom: 0 }
svg { width: 100%; height: 16rem } text { font-size: 11px; fill: #59636e } .axis { stroke: #d1d9e0 }
table { border-collapse: collapse; font-size: 13px } td, th { padding: 0 1rem 0 0; vertical-align: top; text-align: left }
.bar rect { fill: #0969da } .bar line { stroke: currentColor; stroke-width: 1.5 } svg.bars { height: auto }
.legend span { margin-right: 1rem } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; border-radius: 2px }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .axis { stroke: #30363d } text { fill: #9198a1 } }
</style></head><body><h1></h1><main></main>
<script type="application/json" id="data">)html";

constexpr const char* report_page_tail = R"html(</script>
<script>
const page = JSON.parse(document.getElementById('data').textContent);
document.title = document.querySelector('h1').textContent = page.title;
const main = document.querySelector('main');
const colours = ['#0969da', '#cf222e', '#1a7f37', '#9a6700', '#8250df', '#bf3989', '#57606a', '#0550ae'];
const element = (name, attributes, parent, text) => {
  const ns = ['svg', 'path', 'line', 'text', 'rect', 'g'].includes(name) ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml';
  const made = document.createElementNS(ns, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
};
function lines({ title, x: xName, series }) {
  const points = series.flatMap(s => s.points);
  element('h2', {}, main, title);
  const legend = element('div', { class: 'legend' }, main);
  const svg = element('svg', { viewBox: '0 0 900 260', role: 'img', 'aria-label': title }, main);
  const xs = points.map(p => p[0]), ys = points.map(p => p[1]).sort((a, b) => a - b);
  const low = ys[0], high = ys[Math.min(ys.length - 1, Math.ceil(ys.length * 0.995))];
  const x0 = Math.min(...xs), x1 = Math.max(...xs);
  const x = v => 60 + 820 * (v - x0) / (x1 - x0 || 1), y = v => 230 - 215 * (Math.min(v, high) - low) / (high - low || 1);
  for (let i = 0; i <= 4; i++) {
    const value = low + (high - low) * i / 4, at = x0 + (x1 - x0) * i / 4;
    element('line', { x1: 60, x2: 880, y1: y(value), y2: y(value), class: 'axis' }, svg);
    element('text', { x: 52, y: y(value) + 4, 'text-anchor': 'end' }, svg, value.toPrecision(4));
    element('text', { x: x(at), y: 250, 'text-anchor': 'middle' }, svg, Math.round(at * 10) / 10 + (i === 4 ? ' ' + xName : ''));
  }
  series.forEach((s, i) => {
    element('path', { d: 'M' + s.points.map(p => x(p[0]).toFixed(1) + ',' + y(p[1]).toFixed(1)).join('L'), fill: 'none',
                      stroke: colours[i % colours.length], 'stroke-width': s.thin ? 0.6 : 2 }, svg);
    const label = element('span', {}, legend);
    element('i', { style: 'background:' + colours[i % colours.length] }, label);
    label.append(s.name);
  });
}
function bars({ title, bars: shares }) {
  element('h2', {}, main, title);
  const svg = element('svg', { viewBox: `0 0 900 ${26 * shares.length + 24}`, role: 'img', 'aria-label': title, class: 'bars' }, main);
  const x = v => 260 + 520 * v;
  shares.forEach((share, i) => {
    const y = 26 * i + 4, bar = element('g', { class: 'bar' }, svg);
    element('text', { x: 250, y: y + 13, 'text-anchor': 'end' }, svg, share.name);
    element('rect', { x: x(0), y, width: 520 * share.value, height: 18 }, bar);
    element('line', { x1: x(share.lo), x2: x(share.hi), y1: y + 9, y2: y + 9 }, bar);
    element('text', { x: 792, y: y + 13 }, svg, (100 * share.value).toFixed(1) + '%');
  });
  for (const v of [0, 0.5, 1]) element('text', { x: x(v), y: 26 * shares.length + 18, 'text-anchor': 'middle' }, svg, 100 * v + '%');
}
function table({ title, head, rows }) {
  element('h2', {}, main, title);
  const made = element('table', {}, main);
  if (head.length) { const row = element('tr', {}, made); for (const cell of head) element('th', {}, row, cell); }
  for (const cells of rows) { const row = element('tr', {}, made); for (const cell of cells) element('td', {}, row, cell); }
}
const draw = { lines, bars, table, text: ({ text }) => element('p', {}, main, text) };
for (const section of page.sections) draw[section.kind](section);
</script></body></html>
)html";

} // namespace spool
