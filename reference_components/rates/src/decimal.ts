/** Exact decimals on BigInt: units / 10^scale. Nothing here ever becomes a floating-point number. */

const FORM = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
const MAX_DIGITS = 60; // of amounts and rates alike; keeps 1e999999999 from filling the memory

export class Decimal {
  private constructor(
    private readonly units: bigint,
    private readonly scale: number,
  ) {}

  /** The value of a JSON number's text, or undefined when it has too many digits. */
  static parse(text: string): Decimal | undefined {
    const match = FORM.exec(text);
    if (match === null) return undefined;
    const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
    const power = Number(exponent);
    const scale = fraction.length - power;
    if (whole.length + fraction.length + Math.abs(power) > MAX_DIGITS) return undefined;
    const digits = BigInt(sign + whole + fraction);
    return scale >= 0 ? new Decimal(digits, scale) : new Decimal(digits * 10n ** BigInt(-scale), 0);
  }

  get isPositive(): boolean {
    return this.units > 0n;
  }

  times(other: Decimal): Decimal {
    return new Decimal(this.units * other.units, this.scale + other.scale);
  }

  /** The quotient with that many decimals, half to even. The divisor is not zero. */
  over(divisor: Decimal, decimals: number): Decimal {
    const numerator = this.units * 10n ** BigInt(divisor.scale + decimals);
    const denominator = divisor.units * 10n ** BigInt(this.scale);
    return new Decimal(halfEven(numerator, denominator), decimals);
  }

  /** Rounded, or filled with zeros, to that many decimals, half to even. */
  round(decimals: number): Decimal {
    const one = new Decimal(1n, 0);
    return this.over(one, decimals);
  }

  toString(): string {
    const negative = this.units < 0n;
    const digits = (negative ? -this.units : this.units).toString().padStart(this.scale + 1, "0");
    const cut = digits.length - this.scale;
    const text = this.scale > 0 ? `${digits.slice(0, cut)}.${digits.slice(cut)}` : digits;
    return negative ? `-${text}` : text;
  }
}

function halfEven(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n !== denominator < 0n;
  const over = numerator < 0n ? -numerator : numerator;
  const under = denominator < 0n ? -denominator : denominator;
  let quotient = over / under;
  const twice = (over % under) * 2n;
  if (twice > under || (twice === under && quotient % 2n === 1n)) quotient += 1n;
  return negative ? -quotient : quotient;
}
