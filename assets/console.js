// Shows times in the zone of whoever looks, and renews what a page says is live, when the server says that it has changed.
// Without it the pages are as they were when they were loaded, with times in UTC.
;(() => {
  const said = document.getElementById('said')
  const { topic, version } = document.body.dataset
  /** The version that is on the page, and the one that was told last. */
  let shown = version
  let told = version
  /** What was taken over last, by id, before anything was unfolded in it. */
  const taken = new Map()
  let isRenewing = false
  /** Whether it was told, on a page that has nothing to show, that a database is away: there is something when it is back. */
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

  /** Takes over what has changed, but for what somebody is at. What is unfolded stays so. */
  async function renew() {
    const response = await fetch(location.href, { headers: { accept: 'text/html' } })
    if (response.status === 401) return location.reload() // to sign in
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html')
    if (!response.ok)
      throw new Error(fresh.querySelector('main .notice')?.textContent.trim() ?? `answer ${response.status}`)
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
      old.dispatchEvent(new CustomEvent('renewed', { bubbles: true }))
    }
    if (!isLeftOut) shown = fresh.body.dataset.version
    say('')
  }

  /** Whether somebody types, chooses or has marked text in it. */
  function isAt(element) {
    const selection = getSelection()
    return (
      (element.contains(document.activeElement) && document.activeElement !== element) ||
      (!selection.isCollapsed && element.contains(selection.anchorNode))
    )
  }

  function onVersion({ data }) {
    const news = JSON.parse(data)
    if (version === undefined) return void setTimeout(() => location.reload(), wasAway ? 0 : 5000)
    if (news.topic !== topic) return
    told = news.version
    if (told === shown) return say('')
    void catchUp()
  }

  async function catchUp() {
    if (told === shown || isRenewing) return
    isRenewing = true
    try {
      let renewedFor
      do {
        renewedFor = told
        await renew()
      } while (told !== shown && told !== renewedFor) // told meanwhile, of what came after the page was read
    } catch (error) {
      say(`What is shown is old: ${error.message}`)
    } finally {
      isRenewing = false
    }
  }

  function onTrouble({ data }) {
    wasAway = true
    if (version !== undefined) say(`What is shown is old: ${JSON.parse(data).message}`)
  }

  /** It comes again by itself, within two seconds where it was but for its turn; and not where it was refused. */
  function onError() {
    setTimeout(() => stream?.readyState === EventSource.OPEN || sayAway(), 3000)
    if (stream?.readyState !== EventSource.CLOSED) return
    leave()
    setTimeout(comeAgain, 5000)
  }

  function sayAway() {
    if (!document.hidden) say('What is shown is old: the console does not answer.')
  }

  let stream
  /** A browser opens six connections to a host: a page that nobody sees gives its own back. */
  function follow() {
    if (topic === undefined || document.hidden || stream !== undefined) return
    stream = new EventSource(`/live?on=${encodeURIComponent(topic)}`)
    stream.addEventListener('version', onVersion)
    stream.addEventListener('trouble', onTrouble)
    stream.addEventListener('error', onError)
  }

  async function comeAgain() {
    const response = await fetch('/live').catch(() => null)
    if (response?.status === 401)
      location.reload() // to sign in
    else follow()
  }

  function leave() {
    stream?.close()
    stream = undefined
  }

  // What was left out because somebody was at it, once they are no longer.
  document.addEventListener('focusout', () => setTimeout(catchUp))
  document.addEventListener('selectionchange', () => getSelection().isCollapsed && void catchUp())
  document.addEventListener('visibilitychange', () => (document.hidden ? leave() : follow()))
  addEventListener('pagehide', leave)
  addEventListener('pageshow', follow)
  showTimes(document)
  follow()
})()
