// A figure over time, drawn by Chart.js; the table under it says the same in words and figures.
// Colours come from the legend's swatches, so that the style sheet is the one place for them.
import {
  Chart,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip,
  type ChartDataset,
} from "chart.js";
import { useEffect, useRef } from "preact/hooks";
import { moment, tick } from "../figures";
import { onTheme } from "../shell/theme";

Chart.register(LinearScale, LineController, LineElement, PointElement, Tooltip);

interface Series {
  name: string;
  tone: 1 | 2 | 3 | 4;
  dashed?: boolean;
  /** One per moment; undefined where there is no figure, which leaves a gap. */
  values: (number | undefined)[];
}

interface ChartProps {
  title: string;
  at: number[];
  series: Series[];
  format: (value: number | undefined) => string;
}

export function TimeChart(props: ChartProps) {
  const { title, at, series } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart<"line"> | null>(null);

  useEffect(() => {
    const draw = (): void => {
      if (!canvas.current || !legend.current) return;
      chart.current ??= new Chart(canvas.current, { type: "line", data: { datasets: [] } });
      chart.current.data.datasets = datasets(props, legend.current);
      chart.current.options = options(props, legend.current);
      chart.current.update("none");
    };
    draw();
    return onTheme(draw);
  }, [props]);
  useEffect(() => () => chart.current?.destroy(), []);

  return (
    <figure class="chart" aria-label={title}>
      <div class="legend" ref={legend}>
        {series.map((one) => (
          <span key={one.name}>
            <span class={`swatch series-${one.tone}${one.dashed ? " dashed" : ""}`} />
            {one.name}
          </span>
        ))}
        <span class="axis" hidden />
      </div>
      <div class="chart-box">
        <canvas ref={canvas} role="img" aria-label={`${title}; the table below has the figures`} />
      </div>
      <details>
        <summary class="small">
          As a table<span class="hidden">: {title}</span>
        </summary>
        <div class="chart-table" tabIndex={0} role="group" aria-label={`${title}, as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {series.map((one) => (
                  <th key={one.name} scope="col" class="number">
                    {one.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {at.map((when, row) => (
                <tr key={when}>
                  <th scope="row">{moment(when)}</th>
                  {series.map((one) => (
                    <td key={one.name} class="number">
                      {props.format(one.values[row])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function datasets({ at, series }: ChartProps, legend: HTMLElement): ChartDataset<"line">[] {
  const swatches = legend.querySelectorAll(".swatch");
  return series.map((one, index) => {
    const swatch = swatches[index];
    const colour = swatch ? getComputedStyle(swatch).color : "gray";
    const known = one.values.filter((value) => value !== undefined).length;
    return {
      label: one.name,
      data: at.map((x, row) => ({ x, y: one.values[row] ?? Number.NaN })),
      borderColor: colour,
      backgroundColor: colour,
      borderWidth: 1.75,
      borderDash: one.dashed ? [5, 4] : [],
      pointRadius: known < 3 ? 3 : 0, // a line needs two points to be seen
      pointHitRadius: 12,
      spanGaps: false,
      clip: 6, // the last point is drawn whole
    };
  });
}

function options(props: ChartProps, legend: HTMLElement): Chart<"line">["options"] {
  const ink = getComputedStyle(legend).color;
  const axis = legend.querySelector(".axis");
  const line = axis ? getComputedStyle(axis).color : ink;
  const from = props.at[0] ?? 0;
  const to = props.at[props.at.length - 1] ?? from;
  const ticks = { color: ink, font: { size: 11 }, maxRotation: 0 };
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    scales: {
      x: {
        type: "linear",
        min: from,
        max: to,
        grid: { display: false },
        border: { color: line },
        afterBuildTicks: (scale) => {
          scale.ticks = moments(from, to).map((value) => ({ value }));
        },
        ticks: { ...ticks, autoSkip: false, callback: (value) => tick(Number(value), to - from) },
      },
      y: {
        beginAtZero: true,
        grid: { color: line, tickLength: 0 },
        border: { display: false },
        ticks: { ...ticks, maxTicksLimit: 5, precision: 0, padding: 6, callback: (value) => props.format(Number(value)) },
      },
    },
    plugins: {
      tooltip: {
        callbacks: {
          title: (items) => moment(items[0]?.parsed.x ?? undefined),
          label: (item) => `${item.dataset.label}: ${props.format(item.parsed.y ?? undefined)}`,
        },
      },
    },
  };
}

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720].map((min) => min * MINUTE_MS);
const TICKS_MAX = 7;

/** Round times of the reader's clock between two moments. */
function moments(from: number, to: number): number[] {
  const days = Math.ceil((to - from) / TICKS_MAX / DAY_MS) * DAY_MS;
  const step = STEPS_MS.find((one) => (to - from) / one <= TICKS_MAX) ?? days;
  const shift = new Date(from).getTimezoneOffset() * MINUTE_MS;
  const found: number[] = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  return found;
}
