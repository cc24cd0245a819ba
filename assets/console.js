// Counts ages on, takes over what has changed on a live page, shows previews in a dialog, copies ids and commands, and
// says how many records are ticked. Without it the pages are as they were when they were loaded; each says when that was, and links lead to previews.
;(() => {
  const said = document.getElementById('said')
  const asOf = document.getElementById('as-of')
  const { watch, version } = document.body.dataset
  const lookMs = 500
  const patienceMs = 3000
  const focusable = ':is(a, button):not(.copy)'
  /** The server's clock minus the browser's. */
  const aheadMs = asOf === null ? 0 : Date.parse(asOf.dateTime) - Date.now()
  /** The version that is on the page. */
  let shown = version
  /** What was taken over last, by id, before anything was unfolded in it. */
  const taken = new Map()
  let isLooking = false
  /** Whether a page that has nothing to show was told that a database is away: there is something when it is back. */
  let wasAway = false

  /** As the server writes it: `3 d 4 h`, `2 h 5 min`, `40 s`. */
  function duration(ms) {
    const s = Math.round(Math.abs(ms) / 1000)
    const two = (big, unit, small, smallUnit) => (small > 0 ? `${big} ${unit} ${small} ${smallUnit}` : `${big} ${unit}`)
    if (s < 60) return `${s} s`
    if (s < 600) return two(Math.floor(s / 60), 'min', s % 60, 's')
    if (s < 3600) return `${Math.round(s / 60)} min`
    if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min')
    return two(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h')
  }

  function setText(element, text) {
    if (element !== null && element.textContent !== text) element.textContent = text
  }

  function showAges() {
    const nowMs = Date.now() + aheadMs
    for (const time of document.querySelectorAll('time[data-age]')) {
      const ageMs = nowMs - Date.parse(time.dateTime)
      time.title ||= time.dateTime
      setText(time, ageMs >= 0 ? `${duration(ageMs)} ago` : `in ${duration(ageMs)}`)
    }
    if (asOf === null) return
    const ageMs = nowMs - Date.parse(asOf.dateTime)
    const isLive = version !== undefined && ageMs < 2500
    asOf.parentElement.replaceChildren(asOf)
    asOf.classList.toggle('live', isLive)
    asOf.title = `as of ${asOf.dateTime}`
    setText(asOf, isLive ? 'live' : `${duration(ageMs)} old`)
  }

  function markAsCurrent() {
    if (asOf !== null) asOf.dateTime = new Date(Date.now() + aheadMs).toISOString()
  }

  /** @throws Error that says why there is no answer */
  async function ask(path) {
    const response = await fetch(path, {
      headers: { accept: 'text/html' },
      signal: AbortSignal.timeout(patienceMs),
    }).catch(({ name }) => {
      if (name !== 'TimeoutError') throw new Error('the console does not answer.')
      throw new Error(`there has been no answer for ${patienceMs / 1000} s.`)
    })
    if (response.status === 401) location.reload() // to sign in
    if (response.ok) return response
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    throw new Error(page.querySelector('main .notice p')?.textContent.trim() ?? `answer ${response.status}`)
  }

  /**
   * Takes over what has changed, but for what somebody is at: that is left for the next look. What is unfolded stays so,
   * and a button or link keeps the focus.
   * @returns what is left out: '' for nothing
   */
  async function renew() {
    const fresh = new DOMParser().parseFromString(await (await ask(location.href)).text(), 'text/html')
    let leftOut = ''
    for (const old of document.querySelectorAll('[data-live]')) {
      const next = fresh.getElementById(old.id)
      if (next === null || taken.get(old.id) === next.innerHTML) continue
      const isTicked = old.querySelector('input[name=id]:checked, input[name=all]:checked') !== null
      if (isTicked || isAt(old)) {
        leftOut = isTicked ? 'Something has changed. It shows when no record is ticked.' : leftOut || ' '
        continue
      }
      taken.set(old.id, next.innerHTML)
      for (const { id } of old.querySelectorAll('details[open][id]'))
        next.querySelector(`#${CSS.escape(id)}`)?.setAttribute('open', '')
      const focused = [...old.querySelectorAll(focusable)].indexOf(document.activeElement)
      old.replaceChildren(...next.childNodes)
      if (focused >= 0) old.querySelectorAll(focusable)[focused]?.focus({ preventScroll: true })
    }
    addCopyButtons()
    if (leftOut === '') shown = fresh.body.dataset.version
    return leftOut
  }

  /** Whether somebody types, chooses or has marked text in it. */
  function isAt(element) {
    const selection = getSelection()
    const isTyping = document.activeElement.matches('input, select, textarea, summary')
    return (
      (isTyping && element.contains(document.activeElement)) ||
      (!selection.isCollapsed && element.contains(selection.anchorNode))
    )
  }

  /** Looks at whether there is something newer. A page that nobody sees asks nothing. */
  async function look() {
    if (document.hidden || isLooking) return
    isLooking = true
    try {
      const told = await (await ask(watch)).json()
      let leftOut = ''
      if (version === undefined) setTimeout(() => location.reload(), wasAway ? 0 : 5000)
      else if (told.version !== shown) leftOut = await renew()
      if (leftOut === '') markAsCurrent()
      setText(said, leftOut.trim())
      showAttention(told.needAttention)
    } catch ({ message }) {
      wasAway = true
      if (version !== undefined) setText(said, `What is shown is old: ${message}`)
    }
    isLooking = false
    showAges()
  }

  function showAttention(count) {
    if (count === undefined) return
    setText(document.getElementById('attention'), count === 0 ? '' : String(count))
    const title = document.title.replace(/^\(\d+\) /, '')
    document.title = count === 0 ? title : `(${count}) ${title}`
  }

  const dialog = document.createElement('dialog')
  dialog.setAttribute('aria-labelledby', 'dialog-head')
  document.body.append(dialog)

  /** Shows a page's content over this one. A page that asks for nothing is gone to. */
  async function showDialog(path, options) {
    const response = await fetch(path, options).catch(() => null)
    if (response === null) return setText(said, 'The console does not answer.')
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const main = page.getElementById('main')
    if (response.redirected || main === null) return location.assign(response.url)
    main.querySelector('h1')?.setAttribute('id', 'dialog-head')
    if (main.querySelector('[data-close]') === null) {
      const close = Object.assign(document.createElement('button'), { textContent: 'Close', autofocus: true })
      close.dataset.close = ''
      main.append(close)
    }
    dialog.replaceChildren(...main.childNodes)
    addCopyButtons()
    if (!dialog.open) dialog.showModal()
    dialog.querySelector('[autofocus]')?.focus()
  }

  /** Puts a button beside ids and our own commands, never beside texts of others. Browsers let only safe origins copy. */
  function addCopyButtons() {
    if (navigator.clipboard === undefined) return
    for (const code of document.querySelectorAll(':is(.checklist code, [data-copy]):not(:has(+ .copy))')) {
      const button = Object.assign(document.createElement('button'), { type: 'button', className: 'copy' })
      button.textContent = 'Copy'
      button.ariaLabel = `Copy ${code.textContent}`
      code.after(' ', button)
    }
  }

  document.addEventListener('click', (event) => {
    const copy = event.target.closest('.copy')
    if (copy !== null)
      navigator.clipboard.writeText(copy.previousElementSibling.textContent).then(
        () => setText(copy, 'Copied'),
        () => setText(copy, 'Not copied'),
      )
    if (event.target.closest('dialog [data-close]') !== null) {
      event.preventDefault()
      dialog.close()
    }
    const link = event.target.closest('a[data-dialog]')
    if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    showDialog(link.href)
  })

  document.addEventListener('submit', (event) => {
    const { target: form, submitter } = event
    const path = submitter?.getAttribute('formaction') ?? form.getAttribute('action')
    // The change itself, and what shows values, is a page of its own.
    if (!/\/(choose|resolve)$/.test(path)) return
    const fields = new URLSearchParams(new FormData(form, submitter))
    if (fields.has('confirmed')) return
    event.preventDefault()
    showDialog(path, { method: 'POST', body: fields })
  })

  document.addEventListener('change', ({ target }) => {
    if (!target.matches('form.list input[name=id], form.list input[name=all]')) return
    const { form } = target
    const ticks = [...form.querySelectorAll('input[name=id]')]
    if (target.name === 'all') for (const tick of ticks) tick.checked = target.checked
    else form.elements.namedItem('all').checked = false
    const count = ticks.filter(({ checked }) => checked).length
    const isAll = form.elements.namedItem('all').checked
    const some = count > 0 ? `${count} selected` : ''
    setText(document.getElementById('ticked'), isAll ? 'all selected' : some)
  })

  addCopyButtons()
  showAges()
  setInterval(showAges, 1000)
  if (watch === undefined) return
  document.addEventListener('visibilitychange', look)
  setInterval(look, lookMs)
  look()
})()
