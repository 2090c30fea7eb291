// The page that curve.html is: a head, the data as JSON, a tail that draws it as SVG.
#pragma once

namespace spool::train {

constexpr const char* curve_page_head = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>spool-train</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; background: #fff }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-bottom: 0 }
svg { width: 100%; height: 16rem } text { font-size: 11px; fill: #59636e } .axis { stroke: #d1d9e0 }
table { border-collapse: collapse; font-size: 13px } td { padding: 0 1rem 0 0; vertical-align: top }
.legend span { margin-right: 1rem } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; border-radius: 2px }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .axis { stroke: #30363d } text { fill: #9198a1 } }
</style></head><body><h1>Training run</h1><main></main>
<script type="application/json" id="data">)html";

constexpr const char* curve_page_tail = R"html(</script>
<script>
const { settings, entries } = JSON.parse(document.getElementById('data').textContent);
const main = document.querySelector('main');
const colours = ['#0969da', '#cf222e', '#1a7f37', '#9a6700', '#8250df', '#bf3989', '#57606a', '#0550ae'];
const element = (name, attributes, parent, text) => {
  const ns = ['svg', 'path', 'line', 'text'].includes(name) ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml';
  const made = document.createElementNS(ns, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
};
function chart(title, xName, series) {
  const points = series.flatMap(s => s.points).filter(p => p.every(Number.isFinite));
  if (points.length === 0) return;
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
    const drawn = s.points.filter(p => p.every(Number.isFinite));
    if (drawn.length === 0) return;
    element('path', { d: 'M' + drawn.map(p => x(p[0]).toFixed(1) + ',' + y(p[1]).toFixed(1)).join('L'), fill: 'none',
                      stroke: colours[i % colours.length], 'stroke-width': s.thin ? 0.6 : 2 }, svg);
    const label = element('span', {}, legend);
    element('i', { style: 'background:' + colours[i % colours.length] }, label);
    label.append(s.name);
  });
}
const steps = entries.filter(e => 'loss' in e), evaluations = entries.filter(e => 'evaluation' in e);
let mean; const smooth = steps.map(e => [e.step, mean = mean === undefined ? e.loss : 0.95 * mean + 0.05 * e.loss]);
chart('Loss, nats a token', 'steps', [{ name: 'each step', thin: true, points: steps.map(e => [e.step, e.loss]) },
                                      { name: 'smoothed', points: smooth }]);
const arms = evaluations.length ? Object.keys(evaluations[0].evaluation.deep) : [];
chart('Validation, nats a token beyond the window', 'minutes', arms.map(arm =>
  ({ name: arm, points: evaluations.map(e => [e.seconds / 60, e.evaluation.deep[arm].mean]) })));
chart('Share of the lost context recovered', 'minutes',
  [{ name: 'recovered', points: evaluations.map(e => [e.seconds / 60, e.evaluation.recovered.value]) }]);
if (evaluations.some(e => e.evaluation.answers))
  chart('Answers: tokens right', 'minutes', arms.map(arm => ({ name: arm, points: evaluations.filter(e => e.evaluation.answers)
    .map(e => [e.seconds / 60, e.evaluation.answers[arm].digits.mean]) })));
element('h2', {}, main, 'Settings');
const table = element('table', {}, main);
for (const [key, value] of Object.entries(settings)) {
  const row = element('tr', {}, table);
  element('td', {}, row, key);
  element('td', {}, row, Array.isArray(value) ? value.join(', ') : String(value));
}
</script></body></html>
)html";

} // namespace spool::train
