// Shows the values of a line chart at the pointer. A curve is a path element: data-name contains its
// name, and data-values contains x and y of each point of the path.
'use strict';
for (const svg of new Set([...document.querySelectorAll('path[data-values]')].map((path) => path.ownerSVGElement))) {
  const curves = [...svg.querySelectorAll('path[data-values]')].map((path) => {
    const numbers = path.dataset.values.split(' ').map(Number);
    const places = (path.getAttribute('d').match(/[-\d.]+ [-\d.]+/g) || []).map((pair) => pair.split(' ').map(Number));
    return {name: path.dataset.name, colour: path.getAttribute('stroke'),
      points: places.map(([left, top], i) => ({left, top, x: numbers[2 * i], y: numbers[2 * i + 1]}))};
  });
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  const make = (kind, attributes) => {
    const element = document.createElementNS(svg.namespaceURI, kind);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    return element;
  };
  const marks = make('g', {'pointer-events': 'none'});
  svg.append(marks);
  const leave = () => { tip.hidden = true; marks.replaceChildren(); };
  svg.addEventListener('pointerleave', leave);
  svg.addEventListener('pointermove', (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const near = [];
    for (const curve of curves) {
      let best = null;
      for (const point of curve.points) {
        if (!best || Math.abs(point.left - at.x) < Math.abs(best.left - at.x)) best = point;
      }
      if (best && Math.abs(best.left - at.x) < 25) near.push({curve, point: best});
    }
    if (!near.length) return leave();
    near.sort((a, b) => Math.abs(a.point.top - at.y) - Math.abs(b.point.top - at.y));
    marks.replaceChildren(...near.map(({curve, point}) => make('circle', {cx: point.left, cy: point.top, r: 4, fill: curve.colour})));
    const line = (left, right) => {
      const row = document.createElement('div');
      row.append(Object.assign(document.createElement('span'), {textContent: left}), Object.assign(document.createElement('b'), {textContent: right}));
      return row;
    };
    tip.replaceChildren(line('at', near[0].point.x), ...near.slice(0, 12).map(({curve, point}) => line(curve.name, point.y)));
    tip.hidden = false;
    const right = event.clientX > innerWidth / 2;
    tip.style.left = right ? 'auto' : event.clientX + scrollX + 18 + 'px';
    tip.style.right = right ? document.documentElement.clientWidth - event.clientX - scrollX + 18 + 'px' : 'auto';
    tip.style.top = event.clientY + scrollY + 14 + 'px';
  });
}
