const charactersMax = 64

/** @param differencesMax how many letters may differ; by default a third of `word`, or one letter of two */
export function findNearestWord(
  word: string,
  candidates: Iterable<string>,
  differencesMax: number = word.length === 2 ? 1 : Math.floor(word.length / 3),
): string | null {
  if (word.length > charactersMax) return null
  let nearest: string | null = null
  let least = differencesMax + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue
    const steps = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (steps < least) [nearest, least] = [candidate, steps]
  }
  return nearest
}

export function didYouMeanHint(word: string, candidates: Iterable<string>): string {
  const nearest = findNearestWord(word, candidates)
  return nearest === null ? '' : `; did you mean "${nearest}"?`
}

/** Counts the letters to insert, remove, replace or swap with their neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let steps = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        steps = Math.min(steps, (beforeLast[j - 2] ?? 0) + 1)
      }
      row.push(steps)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
