/** Reads the metrics of the daemon on this port, as Prometheus does. */
export async function scrape({ port }: { port: number }): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

/** @param series a metric's name with its labels @returns its value, NaN if the series does not exist */
export async function readMetric(daemon: { port: number }, series: string): Promise<number> {
  const line = (await scrape(daemon)).split('\n').find((each) => each.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1))
}
