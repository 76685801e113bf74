// A chart of one figure of several runs against the step. It shows values at the pointer, and dragging
// zooms. Each curve has points x, y. If a point combines several steps, low and high are their range.
'use strict';

const pointRadius = 2.5;  // of the points of a short curve, in pixels

class Chart {
  constructor(figure, chosen) {
    this.figure = figure;
    this.chosen = chosen;  // called with the selected steps [from, to], or null for all
    this.curves = [];      // {name, colour, x, y, low, high}
    this.log = figure === 'loss';
    this.smooth = -1;      // half the width of the running mean; -1: nothing was drawn yet
    this.view = null;
    this.pointer = null;
    this.drag = null;
    this.element = document.createElement('div');
    this.element.className = 'chart';
    const title = document.createElement('div');
    title.className = 'title';
    title.append(figure);
    this.scale = document.createElement('button');
    this.scale.type = 'button';
    this.scale.title = 'the scale of the values';
    this.scale.onclick = () => { this.log = !this.log; this.draw(); };
    title.append(this.scale);
    // The upper canvas shows what moves with the pointer. The lower canvas shows the curves.
    this.curvesCanvas = document.createElement('canvas');
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', figure + ' against the step');
    this.tip = document.createElement('div');
    this.tip.className = 'tip';
    this.tip.hidden = true;
    this.head = document.createElement('div');
    this.more = document.createElement('div');
    this.lines = [];       // reused lines of the tip
    this.shownLines = -1;  // number of lines that the tip shows
    const layers = document.createElement('div');
    layers.className = 'layers';
    layers.append(this.curvesCanvas, this.canvas);
    this.element.append(title, layers, this.tip);
    this.canvas.onpointerdown = (event) => this.press(event);
    this.canvas.onpointermove = (event) => this.move(event);
    this.canvas.onpointerup = (event) => this.release(event);
    this.canvas.onpointercancel = () => { this.drag = null; this.leave(); };
    this.canvas.onpointerleave = () => { if (!this.drag) this.leave(); };
    this.canvas.ondblclick = () => this.chosen(null);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    // A chart is drawn only while it is visible.
    this.seen = false;
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      if (this.stale) this.draw();
    }, {rootMargin: '100px'}).observe(this.element);
  }

  // Draws the chart again only if its data have changed, because show() is called every two seconds.
  show(curves, view, smooth) {
    const same = (a, b) => a && a.x === b.x && a.y === b.y && a.name === b.name && a.colour === b.colour;
    const known = view === this.view && smooth === this.smooth && curves.length === this.curves.length &&
      curves.every((curve, i) => same(this.curves[i], curve));
    if (known) return;
    this.curves = curves;
    this.view = view;
    this.smooth = smooth;
    this.draw();
  }

  // Requests that the chart be drawn. It is drawn at most once per frame.
  draw() {
    this.stale = true;
    this.point();
  }
  point() {
    if (this.waiting || !this.seen) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (this.stale) this.paint();
      this.stale = false;
      this.paintPointer();
    });
  }

  // The running mean over `smooth` neighbours on each side.
  smoothed(y) {
    if (!this.smooth) return y;
    const sums = [0];
    for (const value of y) sums.push(sums[sums.length - 1] + value);
    return y.map((_, i) => {
      const from = Math.max(0, i - this.smooth), to = Math.min(y.length, i + this.smooth + 1);
      return (sums[to] - sums[from]) / (to - from);
    });
  }

  extent() {
    let [left, right, low, high] = [0, -Infinity, Infinity, -Infinity];
    for (const curve of this.curves) {
      for (let i = 0; i < curve.x.length; ++i) {
        right = Math.max(right, curve.x[i]);
        const y = curve.shown[i];
        if (this.log && y <= 0) continue;
        low = Math.min(low, y);
        high = Math.max(high, y);
      }
    }
    if (this.view) [left, right] = this.view;
    if (!(left < right)) [left, right] = [left - 1, left + 1];
    if (!(low <= high)) [low, high] = this.log ? [0.1, 1] : [0, 1];
    return {left, right, ...this.range(low, high)};
  }

  // The range of the vertical axis for values from low to high. Shares have the axis 0 to 1. The axis
  // includes negative numbers only if there are negative values.
  range(low, high) {
    if (this.log) {
      const room = Math.exp((Math.log(high) - Math.log(low)) * 0.05);
      return low < high ? {low: low / room, high: high * room} : {low: low / 2, high: high * 2};
    }
    if (isShare(this.figure) && low >= 0 && high <= 1) return {low: -0.03, high: 1.03};
    if (low === high) return low === 0 ? {low: 0, high: 1} : {low: low - Math.abs(low) * 0.1, high: high + Math.abs(high) * 0.1};
    const room = (high - low) * 0.06;
    return {low: low >= 0 ? Math.max(0, low - room) : low - room, high: high + room};
  }

  paint() {
    const g = clean(this.curvesCanvas);
    if (!g) return;
    const width = this.curvesCanvas.clientWidth, height = this.curvesCanvas.clientHeight;
    const style = getComputedStyle(document.documentElement);
    const faint = style.getPropertyValue('--faint'), rule = style.getPropertyValue('--rule');
    for (const curve of this.curves) curve.shown = this.smoothed(curve.y);
    this.scale.textContent = this.log ? 'log' : 'linear';
    const e = this.extent();
    const box = {left: 52, right: width - 8, top: 8, bottom: height - 22};
    const put = this.log ? Math.log : (value) => value;
    const x = (value) => box.left + (box.right - box.left) * (value - e.left) / (e.right - e.left);
    const y = (value) => box.bottom - (box.bottom - box.top) * (put(value) - put(e.low)) / (put(e.high) - put(e.low));
    this.place = {e, box, x, y};

    g.font = '11px system-ui, sans-serif';
    g.fillStyle = faint;
    g.strokeStyle = rule;
    g.lineWidth = 1;
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (const mark of this.log ? logMarks(e.low, e.high) : marks(e.low, e.high, 5)) {
      const at = Math.round(y(mark)) + 0.5;
      g.beginPath();
      g.moveTo(box.left, at);
      g.lineTo(box.right, at);
      g.stroke();
      g.fillText(short(mark), box.left - 6, at);
    }
    g.textAlign = 'center';
    g.textBaseline = 'top';
    for (const mark of marks(e.left, e.right, Math.max(2, Math.floor(width / 80)))) {
      if (!Number.isInteger(mark)) continue;  // steps are integers
      g.fillText(mark < 10000 ? mark : short(mark), Math.min(Math.max(x(mark), box.left), box.right - 12), box.bottom + 6);
    }
    g.save();
    g.beginPath();
    g.rect(box.left, box.top, box.right - box.left + pointRadius, box.bottom - box.top);
    g.clip();
    for (const curve of this.curves) this.paintCurve(g, curve, x, y);
    g.restore();
  }

  paintCurve(g, curve, x, y) {
    if (curve.low && !this.smooth && this.curves.length <= 8) {
      g.globalAlpha = 0.15;
      g.fillStyle = curve.colour;
      g.beginPath();
      const floor = this.log ? this.place.e.low : -Infinity;
      for (let i = 0; i < curve.x.length; ++i) g.lineTo(x(curve.x[i]), y(Math.max(curve.high[i], floor)));
      for (let i = curve.x.length; i-- > 0;) g.lineTo(x(curve.x[i]), y(Math.max(curve.low[i], floor)));
      g.fill();
      g.globalAlpha = 1;
    }
    g.strokeStyle = g.fillStyle = curve.colour;
    g.lineWidth = 1.6;
    g.lineJoin = 'round';
    g.beginPath();
    let down = false;
    for (let i = 0; i < curve.x.length; ++i) {
      if (this.log && curve.shown[i] <= 0) { down = false; continue; }
      if (down) g.lineTo(x(curve.x[i]), y(curve.shown[i]));
      else g.moveTo(x(curve.x[i]), y(curve.shown[i]));
      down = true;
    }
    g.stroke();
    if (down && curve.x.length === 1) this.paintLevel(g, x(curve.x[0]), y(curve.shown[0]));
    if (curve.x.length > 30) return;
    for (let i = 0; i < curve.x.length; ++i) {
      if (this.log && curve.shown[i] <= 0) continue;
      g.beginPath();
      g.arc(x(curve.x[i]), y(curve.shown[i]), pointRadius, 0, 7);
      g.fill();
    }
  }

  // Draws a dashed line from the left edge to the only point of a curve, so that the values of several
  // runs can be compared.
  paintLevel(g, right, at) {
    g.setLineDash([4, 4]);
    g.beginPath();
    g.moveTo(this.place.box.left, at);
    g.lineTo(right, at);
    g.stroke();
    g.setLineDash([]);
  }

  // Draws a vertical line at the pointer and lists the values of the curves there, the nearest
  // curve first.
  paintPointer() {
    const g = clean(this.canvas);
    if (!g || !this.place || !this.pointer || !this.curves.length) {
      this.tip.hidden = true;
      return;
    }
    const {e, box, x, y} = this.place;
    const style = getComputedStyle(document.documentElement);
    if (this.drag) {
      g.fillStyle = style.getPropertyValue('--strong');
      g.globalAlpha = 0.18;
      g.fillRect(Math.min(this.drag.x, this.pointer.x), box.top, Math.abs(this.pointer.x - this.drag.x), box.bottom - box.top);
      g.globalAlpha = 1;
    }
    const at = Math.min(Math.max(this.pointer.x, box.left), box.right);
    const step = e.left + (e.right - e.left) * (at - box.left) / (box.right - box.left);
    const found = [];
    for (const curve of this.curves) {
      const i = nearest(curve.x, step);
      if (i < 0 || Math.abs(x(curve.x[i]) - at) > 30) continue;  // the curve has no point near the pointer
      found.push({curve, i, away: Math.abs(y(curve.shown[i]) - this.pointer.y)});
    }
    this.tip.hidden = !found.length;
    if (!found.length) return;
    found.sort((a, b) => a.away - b.away);
    const first = found[0];
    g.strokeStyle = style.getPropertyValue('--faint');
    g.setLineDash([3, 3]);
    g.beginPath();
    g.moveTo(x(first.curve.x[first.i]), box.top);
    g.lineTo(x(first.curve.x[first.i]), box.bottom);
    g.stroke();
    g.setLineDash([]);
    const told = found.slice(0, 10);
    for (const {curve, i} of told) {
      g.fillStyle = curve.colour;
      g.beginPath();
      g.arc(x(curve.x[i]), y(curve.shown[i]), 3.5, 0, 7);
      g.fill();
    }
    this.head.textContent = 'step ' + Math.round(first.curve.x[first.i]).toLocaleString('en');
    while (this.lines.length < told.length) this.lines.push(new TipLine());
    told.forEach(({curve, i}, k) => this.lines[k].tell(curve.colour, curve.name, precise(curve.shown[i])));
    this.more.textContent = found.length > told.length ? 'and ' + (found.length - told.length) + ' more' : '';
    if (this.shownLines !== told.length) {
      this.tip.replaceChildren(this.head, ...this.lines.slice(0, told.length).map((line) => line.element), this.more);
      this.shownLines = told.length;
    }
    this.tip.hidden = false;
    // If the pointer is in the right half, the tip is at its left.
    const right = at > (box.left + box.right) / 2;
    this.tip.style.left = right ? '4rem' : 'auto';
    this.tip.style.right = right ? 'auto' : '.8rem';
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }
  press(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = this.pointer = this.at(event);
  }
  move(event) {
    this.pointer = this.at(event);
    this.point();
  }
  release(event) {
    const from = this.drag, to = this.at(event);
    this.drag = null;
    if (from && this.place && Math.abs(to.x - from.x) > 6) {
      const {e, box} = this.place;
      const step = (pixel) => e.left + (e.right - e.left) * (Math.min(Math.max(pixel, box.left), box.right) - box.left) / (box.right - box.left);
      const [a, b] = [step(from.x), step(to.x)].sort((p, q) => p - q);
      if (b - a >= 2) this.chosen([Math.floor(a), Math.ceil(b)]);
    }
    this.point();
  }
  leave() {
    this.pointer = null;
    this.point();
  }
}

// True if the figure's name belongs to a share of right answers. Figures of an evaluation are named
// DISTRIBUTION/METRIC.
function isShare(figure) {
  return figure === 'accuracy' || /\/(?!loss$|perplexity$|bits_per_byte$|edit-distance$)/.test(figure);
}

// One run's line in the tip.
class TipLine {
  constructor() {
    this.element = document.createElement('div');
    [this.swatch, this.label, this.value] = ['swatch', 'label', 'value'].map((name) => {
      const part = document.createElement('span');
      part.className = name;
      this.element.append(part);
      return part;
    });
  }
  tell(colour, label, value) {
    this.swatch.style.background = colour;
    this.label.textContent = label;
    this.value.textContent = value;
  }
}

// Clears a canvas and fits its size to the page. Returns its drawing context, or null if the canvas
// is hidden.
function clean(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return null;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return g;
}

// The index of the value nearest to `wanted` in an ascending list, or -1 if the list is empty.
function nearest(list, wanted) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low > 0 && wanted - list[low - 1] < list[low] - wanted ? low - 1 : low < list.length ? low : -1;
}

// About `wanted` round numbers between low and high.
function marks(low, high, wanted) {
  const raw = (high - low) / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= raw * 0.999);
  const all = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) all.push(k * step);
  return all;
}
function logMarks(low, high) {
  const all = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const stride = Math.max(1, Math.ceil((last - first) / 8));
  for (let power = first; power <= last; power += stride) {
    for (const digit of last - first > 3 ? [1] : [1, 2, 5]) {
      const mark = digit * Math.pow(10, power);
      if (mark >= low && mark <= high) all.push(mark);
    }
  }
  return all.length > 1 ? all : marks(low, high, 5);
}
function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (size >= unit * 0.9999) return parseFloat((value / unit).toPrecision(4)) + letter;
  }
  if (size > 0 && size < 1e-3) return value.toExponential(0);
  return String(parseFloat(value.toPrecision(4)));
}
function precise(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return short(value);
  return size > 0 && size < 1e-3 ? value.toExponential(3) : String(parseFloat(value.toPrecision(5)));
}
