// Shows times in the zone of whoever looks, and asks every now and then whether what a page says is live has changed.
// Without it the pages are as they were when they were loaded, with times in UTC.
;(() => {
  const said = document.getElementById('said')
  const { watch, version } = document.body.dataset
  const lookMs = 1500
  const patienceMs = 3000
  /** The version that is on the page. */
  let shown = version
  /** What was taken over last, by id, before anything was unfolded in it. */
  const taken = new Map()
  let isLooking = false
  /** Whether a page that has nothing to show was told that a database is away: there is something when it is back. */
  let wasAway = false

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

  /** As the commands write it, in columns of one width: 2026-11-22 04:16:00. */
  function hereAt(at) {
    const two = (number) => String(number).padStart(2, '0')
    const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
    return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`
  }

  function showTimes(within) {
    for (const time of within.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime)
      if (Number.isNaN(at.getTime())) continue
      const here = hereAt(at)
      if (time.dataset.age === undefined) time.textContent = here
      else if (!time.title.includes(here)) time.title = `${here} ${zone}\n${time.title}`
    }
  }

  function say(words) {
    if (said.textContent !== words) said.textContent = words
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

  /** Takes over what has changed, but for what somebody is at: that is left for the next look. What is unfolded stays so. */
  async function renew() {
    const fresh = new DOMParser().parseFromString(await (await ask(location.href)).text(), 'text/html')
    let isLeftOut = false
    for (const old of document.querySelectorAll('[data-live]')) {
      const next = fresh.getElementById(old.id)
      if (next === null || taken.get(old.id) === next.innerHTML) continue
      if (isAt(old)) {
        isLeftOut = true
        continue
      }
      taken.set(old.id, next.innerHTML)
      for (const { id } of old.querySelectorAll('details[open][id]'))
        next.querySelector(`#${CSS.escape(id)}`)?.setAttribute('open', '')
      showTimes(next)
      old.replaceChildren(...next.childNodes)
    }
    if (!isLeftOut) shown = fresh.body.dataset.version
  }

  /** Whether somebody types, chooses or has marked text in it. */
  function isAt(element) {
    const selection = getSelection()
    return (
      (element.contains(document.activeElement) && document.activeElement !== element) ||
      (!selection.isCollapsed && element.contains(selection.anchorNode))
    )
  }

  /** Looks at whether there is something newer. A page that nobody sees asks nothing. */
  async function look() {
    if (document.hidden || isLooking) return
    isLooking = true
    try {
      const told = (await (await ask(watch)).json()).version
      if (version === undefined) setTimeout(() => location.reload(), wasAway ? 0 : 5000)
      else if (told !== shown) await renew()
      say('')
    } catch ({ message }) {
      wasAway = true
      if (version !== undefined) say(`What is shown is old: ${message}`)
    }
    isLooking = false
  }

  showTimes(document)
  if (watch === undefined) return
  document.addEventListener('visibilitychange', look)
  setInterval(look, lookMs)
  look()
})()
