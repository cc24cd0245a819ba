import { countedRequests } from '../countedRequests.ts'
import { type Finding, likely, unknown } from '../finding.ts'
import { fitWindows, type Observation } from '../fitWindow.ts'
import type { Question } from '../question.ts'
import { tokensSample } from '../samples/tokens.ts'
import { windowSample } from '../samples/window.ts'

export const rateWindow: Question = {
  name: 'rate-window',
  section: '8',
  asks: 'whether the window slides or is fixed, and how long it is (watched for nearly two of them)',
  requestsMax: 0,
  recordsMax: 0,
  samples: [windowSample, tokensSample],
  needs: ['slow'],
  harmless: false,
  async run(parts) {
    const tokens = await parts.sample(tokensSample)
    return judgeRateWindow(countedRequests(parts.exchanges(), tokens), parts.config.rateLimit.windowMs)
  },
}

const usualMs = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 3_600].map((seconds) => seconds * 1_000)

/** Pure. @param windowMs as it is configured */
export function judgeRateWindow(seen: readonly Observation[], windowMs: number): Finding {
  const assumed = `any kind, of ${windowMs / 1000} s (RATE_LIMIT_WINDOW_SECONDS)`
  const said = seen.flatMap(({ remaining }) => remaining ?? [])
  if (said.length < 4) return unknown('X-RateLimit-Remaining is not on the answers', { assumed })
  const why = `remaining: ${said.join(', ')}`
  if (said.every((remaining, i) => i === 0 || remaining < (said[i - 1] ?? 0)))
    return likely('longer', `${why}: nothing was freed`, {
      assumed,
      differs: true,
      cannot: `the window is longer than ${windowMs / 1000} s: ask for its length and set RATE_LIMIT_WINDOW_SECONDS, or the service will refuse requests`,
    })
  const fits = fitWindows(seen, [...new Set([windowMs, ...usualMs])])
  const kinds = [...new Set(fits.map(({ kind }) => kind))]
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1)
    return unknown(`${why}: no window, or more than one kind, explains that`, { assumed })
  const lengths = fits.map((fit) => fit.windowMs)
  if (lengths.includes(windowMs)) return likely(`${kind}, ${windowMs / 1000} s`, why, { assumed })
  const longestMs = Math.max(...lengths)
  const set = [
    {
      variable: 'RATE_LIMIT_WINDOW_SECONDS',
      value: String(longestMs / 1000),
      why: 'what remained came back after that time',
    },
  ]
  return likely(`${kind}, ${longestMs / 1000} s`, why, { assumed, differs: true, set })
}
