#!/bin/sh
# Draws the picture of docs/scaling.md from measured numbers:
#   scripts/scaling_picture.sh [--table] [docs/scaling.tsv [docs/scaling.svg]]
# With --table, prints a table of the step times on clusters that the model below predicts. A line of the
# first file contains: experiment, ranks, step, computation of the slowest rank, exchange, exposed (times
# in ms), and bytes that a rank sends. Lines that begin with # are comments. A line `fit KEY VALUE` sets a
# constant of the model, which was fitted to the measurements:
#   step = compute / N + rest + exposed
#   exposed = max(last bucket, exchange - hidden),  exchange = 2 (N-1)/N bytes / (share of the link)
#             + 2 log2(N) buckets latency,  hidden = 2/3 of the compute of a rank's last part
set -eu
table=0
[ "${1:-}" != --table ] || { table=1; shift; }
numbers=${1:-docs/scaling.tsv} picture=${2:-docs/scaling.svg}
[ $table = 1 ] && picture=/dev/null
awk -v table=$table -v picture="$picture" '
function log2(x) { return log(x) / log(2) }
function largest(a, b) { return a > b ? a : b }
# Seconds of a step of the model m on n ranks with one part each, over a link of `gbit` Gbit/s.
function step(m, n, gbit,    compute, bytes, exchange, last) {
  compute = operations[m] / n / speed
  bytes = 4 * parameters[m]
  exchange = 2 * (n - 1) / n * bytes / (gbit * 125e6 * fit["share"]) \
             + 2 * log2(n) * bytes / bucket * latency
  last = 2 * (n - 1) / n * bucket / (gbit * 125e6 * fit["share"]) + 2 * log2(n) * latency
  hidden = 2 / 3 * compute
  exposed = largest(last, exchange - hidden)
  return compute + exposed
}
function text_at(x, y, words, how) {
  printf "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, how, words > picture
}
function line(x1, y1, x2, y2, how) {
  printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, how > picture
}
BEGIN {
  FS = "\t"
  bucket = 4194304
  latency = 2e-5   # seconds of an exchange between two hosts
  speed = 1e14     # operations per second of a rank
  name[1] = "GPT-2 124M, 0.5 M tokens a step"; parameters[1] = 124.4e6; operations[1] = 6 * 124.4e6 * 524288
  name[2] = "Llama 1B, 4 M tokens a step"; parameters[2] = 1.236e9; operations[2] = 6 * 1.236e9 * 4194304
  links = split("10 100 400", link, " ")
  color[1] = "#c0392b"; color[2] = "#2471a3"; color[3] = "#1e8449"
}
/^#/ { next }
$1 == "fit" { fit[$2] = $3; next }
{ count++; what[count] = $1; ranks[count] = $2; ms[count] = $3; own[count] = $4; shown[count] = $6 }
END {
  if (table) {
    print "| model | link, Gbit/s | 8 | 32 | 128 | 512 | 1024 | half of the time is exchange from |"
    print "|---|---|---|---|---|---|---|---|"
    for (m = 1; m <= 2; m++) for (l = 1; l <= links; l++) {
      row = "| " name[m] " | " link[l] " |"
      for (k = 1; k <= 5; k++) {
        n = k == 5 ? 1024 : 2 * 4 ^ k
        t = step(m, n, link[l])
        row = row sprintf(" %.3g s, %.0f%% |", t, 100 * (t - exposed) / t)
      }
      end = "more than 1024"
      for (n = 2; n <= 1024; n *= 2) {
        t = step(m, n, link[l])
        if (exposed > t / 2) { end = n; break }
      }
      print row " " end " |"
    }
    exit
  }
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"920\" height=\"330\" viewBox=\"0 0 920 330\" font-family=\"sans-serif\" font-size=\"12\">" > picture
  print "<rect width=\"920\" height=\"330\" fill=\"white\"/>" > picture
  # The left panel shows the measured computation and exposed exchange of each step.
  text_at(30, 22, "Measured here, 2 cores: ms a step", " font-weight=\"bold\"")
  most = 0
  for (i = 1; i <= count; i++) most = largest(most, ms[i])
  for (i = 1; i <= count; i++) {
    y = 36 + (i - 1) * 270 / count
    height = 270 / count - 5
    scale = 150 / most
    text_at(128, y + height / 2 + 4, what[i] ", " ranks[i], " text-anchor=\"end\" font-size=\"11\"")
    printf "<rect x=\"134\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#7f8c8d\"/>\n", y, scale * (ms[i] - shown[i]), height > picture
    printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#c0392b\"/>\n", 134 + scale * (ms[i] - shown[i]), y, scale * shown[i], height > picture
    text_at(138 + scale * ms[i], y + height / 2 + 4, sprintf("%.0f", ms[i]), " font-size=\"11\"")
  }
  text_at(30, 322, "grey: computing; red: exposed exchange, waiting", " font-size=\"11\"")
  # The right panels show the predicted times, one panel for each language model.
  for (m = 1; m <= 2; m++) {
    left = 360 + (m - 1) * 285; top = 40; wide = 240; high = 240
    text_at(left, 22, name[m], " font-weight=\"bold\"")
    for (p = 0; p <= 100; p += 25) {
      y = top + high * (1 - p / 100)
      line(left, y, left + wide, y, "stroke=\"#dddddd\"")
      text_at(left - 5, y + 4, p "%", " text-anchor=\"end\" font-size=\"11\"")
    }
    for (n = 8; n <= 1024; n *= 2) text_at(left + wide * (log2(n) - 3) / 7, top + high + 16, n, " text-anchor=\"middle\" font-size=\"11\"")
    for (l = 1; l <= links; l++) {
      points = ""
      for (n = 8; n <= 1024; n *= 2) {
        t = step(m, n, link[l])
        points = points sprintf("%.1f,%.1f ", left + wide * (log2(n) - 3) / 7, top + high * exposed / t)
      }
      printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points, color[l] > picture
      text_at(left + 8, top + high - 44 + 15 * (l - 1), link[l] " Gbit/s", " fill=\"" color[l] "\" font-size=\"11\"")
    }
    text_at(left, 322, "share of a step that computes, by ranks", " font-size=\"11\"")
  }
  print "</svg>" > picture
}' "$numbers"
