/** The metrics of the daemon that listens there, as Prometheus reads them. */
export async function scrape({ port }: { port: number }): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

/** @param series a metric's name with its labels @returns its value, NaN where there is no such series */
export async function readMetric(daemon: { port: number }, series: string): Promise<number> {
  const line = (await scrape(daemon)).split('\n').find((each) => each.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1))
}
