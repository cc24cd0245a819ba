// Draws the plots of the page Now so that they can be pointed at, and adds each minute that is over. Without it they are pictures.
;(() => {
  const place = document.querySelector('[data-history]')
  if (place === null || typeof uPlot === 'undefined') return
  const renewMs = 30_000
  const height = 160
  const drawn = new Map()

  function colourOf(element, property) {
    return () => getComputedStyle(element)[property]
  }

  function showDuration(ms) {
    const s = Math.round(ms / 1000)
    if (s < 100) return `${s} s`
    if (s < 6000) return `${Math.round(s / 60)} min`
    if (s < 172_800) return `${Math.round(s / 3600)} h`
    return `${Math.round(s / 86_400)} d`
  }

  const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', hourCycle: 'h23' })
  const moments = { hour: clock, day: clock, week: day }
  const show = { count: (value) => value.toLocaleString(), ms: showDuration }

  function dataOf({ atMs }, { series }) {
    return [atMs.map((ms) => ms / 1000), ...series.map(({ values }) => values)]
  }

  function optionsOf(figure, range, { unit, series }, width) {
    const legend = figure.querySelectorAll('[data-series]')
    const text = colourOf(figure, 'color')
    const grid = { stroke: colourOf(figure, 'borderTopColor'), width: 1 }
    const showMoment = (s) => moments[range].format(new Date(s * 1000))
    const pointed = (plot) => {
      const at = plot.cursor.idx === null ? undefined : plot.data[0][plot.cursor.idx]
      figure.querySelector('[data-pointed-at]').textContent = at === undefined ? '' : showMoment(at)
      series.forEach((_, i) => {
        const value = plot.cursor.idx === null ? null : plot.data[i + 1][plot.cursor.idx]
        legend[i].querySelector('[data-pointed]').textContent = typeof value === 'number' ? show[unit](value) : ''
      })
    }
    return {
      width,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { setScale: false } },
      scales: { y: { range: (_plot, _least, most) => [0, Math.max(most || 0, 1) * 1.05] } },
      axes: [
        { stroke: text, grid, ticks: grid, space: 80, values: (_plot, ticks) => ticks.map(showMoment) },
        { stroke: text, grid, ticks: grid, size: 64, values: (_plot, ticks) => ticks.map((tick) => show[unit](tick)) },
      ],
      series: [
        {},
        ...series.map((_, i) => ({
          stroke: colourOf(legend[i].querySelector('path'), 'stroke'),
          width: 2,
          points: { size: 4 },
        })),
      ],
      hooks: { setCursor: [pointed] },
    }
  }

  function draw(history, plot) {
    const figure = document.getElementById(`plot-${plot.id}`)
    if (figure === null) return
    figure.querySelector('[data-said]').textContent = plot.said
    const before = drawn.get(plot.id)
    if (before !== undefined) {
      before.plot.setData(dataOf(history, plot))
      before.target.setAttribute('aria-label', `${plot.title}: ${plot.said}`)
      return
    }
    const target = document.createElement('div')
    target.setAttribute('role', 'img')
    target.setAttribute('aria-label', `${plot.title}: ${plot.said}`)
    figure.querySelector('[data-drawing]').replaceWith(target)
    const made = new uPlot(optionsOf(figure, history.range, plot, target.clientWidth), dataOf(history, plot), target)
    drawn.set(plot.id, { plot: made, target })
    new ResizeObserver(() => made.setSize({ width: target.clientWidth, height })).observe(target)
  }

  async function renew() {
    if (document.hidden) return
    const response = await fetch(place.dataset.history)
    if (!response.ok) return // the page says what is wrong
    const history = await response.json()
    // The first minute of a new ledger: there is no place for a plot yet.
    if (history.atMs.length > 0 && place.querySelector('.plot') === null) return location.reload()
    for (const plot of history.plots) draw(history, plot)
    place.querySelector('[data-reach]')?.remove() // the axes say it, and go on
  }

  const renewQuietly = () => renew().catch(() => {})
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const { plot } of drawn.values()) plot.redraw()
  })
  document.addEventListener('visibilitychange', renewQuietly)
  setInterval(renewQuietly, renewMs)
  renewQuietly()
})()
