'use strict';

const soft = getComputedStyle(document.querySelector('small') ?? document.body).color;
const colour = { checks: '#3b7dd8', denied: '#9aa3ab', unanswered: '#cc3340', p50: '#1a8a55', p99: '#d98a1f' };

// The panes, from top to bottom: what clients saw, how long they waited, whom the
// nodes saw, what the nodes took.
const panes = [
  { title: 'checks a second', top: 40, height: 150 },
  { title: 'latency, ms', top: 235, height: 110, axis: { type: 'log', min: 0.1 } },
  { title: 'members, as each node sees them', top: 390, height: 80, axis: { minInterval: 1, min: 0 } },
  { title: 'memory of each node, MiB', top: 515, height: 80 },
];

const points = (at, values) => at.map((t, i) => [t, values[i]]);

function line(pane, name, data, more = {}) {
  return { type: 'line', name, data, xAxisIndex: pane, yAxisIndex: pane, showSymbol: false, lineStyle: { width: 1.5 }, ...more };
}

// marks draws faults as bands, and moments as lines, into a series.
function marks(run, labelled) {
  return {
    markArea: {
      silent: !labelled,
      itemStyle: { color: 'rgba(204, 51, 64, .10)' },
      label: { show: false },
      emphasis: { label: { show: labelled, position: 'insideTop', color: soft }, itemStyle: { color: 'rgba(204, 51, 64, .2)' } },
      data: run.bands.map(b => [{ name: b.text, xAxis: b.from }, { xAxis: b.to }]),
    },
    markLine: {
      symbol: 'none',
      silent: true,
      lineStyle: { color: soft, type: 'dotted', opacity: .7 },
      label: { show: labelled, formatter: m => (/^(start|ready) /.test(m.name) || run.events.length > 40 ? '' : m.name), rotate: 0, fontSize: 10, color: soft, position: 'end' },
      data: run.events.map(e => ({ name: e.text, xAxis: e.at })),
    },
  };
}

function series(run) {
  const of = (name, pane, more) => line(pane, name, points(run.at, run[name]), { color: colour[name], ...more });
  const all = [
    of('checks', 0, { areaStyle: { opacity: .12 }, ...marks(run, true) }),
    of('denied', 0),
    of('unanswered', 0, { areaStyle: { opacity: .3 } }),
    of('p50', 1, marks(run, false)),
    of('p99', 1),
  ];
  run.nodes.forEach((n, i) => {
    all.push(line(2, n.name, points(n.at, n.members), { step: 'end', ...(i ? {} : marks(run, false)) }));
    all.push(line(3, n.name, points(n.at, n.memory), i ? {} : marks(run, false)));
  });
  return all;
}

function tooltip(run, items) {
  if (!items.length) return '';
  const t = items[0].axisValue;
  const during = run.bands.filter(b => b.from <= t && t <= b.to).map(b => echarts.format.encodeHTML(b.text));
  const rows = items.map(i => `${i.marker}${i.seriesName} ${Math.round(i.value[1] * 10) / 10}`);
  return [`<b>${t.toFixed(1)} s</b>`, ...during, ...rows].join('<br>');
}

function draw(element) {
  const run = runs[element.dataset.run];
  const last = run.at.at(-1) ?? 1;
  const chart = echarts.init(element, matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : null);
  chart.setOption({
    backgroundColor: 'transparent',
    animation: false,
    grid: panes.map(p => ({ left: 60, right: 20, top: p.top, height: p.height })),
    title: panes.map(p => ({ text: p.title, left: 56, top: p.top - 24, textStyle: { fontSize: 12, color: soft } })),
    xAxis: panes.map((p, i) => ({ type: 'value', gridIndex: i, min: 0, max: last, axisLabel: { formatter: '{value} s', color: soft } })),
    yAxis: panes.map((p, i) => ({ type: 'value', gridIndex: i, splitNumber: 3, axisLabel: { color: soft }, ...p.axis })),
    legend: { data: ['checks', 'denied', 'unanswered', 'p50', 'p99'], right: 20, top: 0, textStyle: { color: soft } },
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    tooltip: { trigger: 'axis', formatter: items => tooltip(run, items) },
    dataZoom: [{ type: 'inside', xAxisIndex: panes.map((p, i) => i) }, { xAxisIndex: panes.map((p, i) => i), bottom: 6, height: 18 }],
    series: series(run),
  });
  new ResizeObserver(() => chart.resize()).observe(element);
}

// A chart is drawn when it comes into view: a report may hold thirty of them.
const seen = new IntersectionObserver((entries, observer) => {
  for (const e of entries.filter(e => e.isIntersecting)) {
    observer.unobserve(e.target);
    draw(e.target);
  }
}, { rootMargin: '300px' });
document.querySelectorAll('.chart').forEach(c => seen.observe(c));
