"""What the wizard says: a line under each question, and more behind a question mark."""

from __future__ import annotations

WELCOME = """\
A few questions about your data, and you have a project folder that answers
private queries. Enter takes the answer in [brackets], ? explains more, < goes
back a question, Ctrl-C leaves without a trace. No row of your data is read."""

FILES_WHY = "CSV, TSV, Parquet or DuckDB; several with commas. The one about people first."
FILES_MORE = """\
Each file becomes a table that queries can name. Files stay where they are; sfumato.yaml holds their paths. \
They are opened only when a paid release runs."""

TABLES_WHY = "Only names and declared types are read, no rows."
TABLES_MORE = "Type the names of the tables that queries may use, with commas between them."

VIEWS_WHY = "Their definitions were read, no rows. What they say is put into queries that name them."
VIEWS_MORE = "Type their names with commas between them, or none. Whose rows they show is tracked through them."

HEADER_WHY = "If so, only that first line is read, as column names. Nothing else is read."
HEADER_MORE = """\
A first line that is data already belongs to somebody, so it is not looked at unless you say that it holds names. \
If you say no, you will be asked for the names, and the file is not opened at all."""

DOUBT_WHY = "Some of its words look like numbers or dates, so that none of them is shown."
DOUBT_MORE = "Names such as 2024, 2025, 2026 are fine: say y. If the first line is a row of data, say n and name them."

NAMES_WHY = "With commas, such as: patient, ward, cost. Of the file, the cells of its first line are counted."
NAMES_MORE = "All columns of the file in their order, also those that queries do not need: they can be left out next."

TRIM_WHY = "As in: 39, State-gov, 77516. Where there are none, that changes nothing."
TRIM_MORE = """\
With a blank before it, State-gov is not State-gov: it would count as missing where it is one of a few values that you \
list, and as somebody else where it names a person."""

DECIMAL_WHY = "Such as 1234.5, 1234,5 or 1.234,5. Its cells are parted by semicolons."
DECIMAL_MORE = """\
Nothing is guessed: a number that is not written like this cannot be read, and counts as missing. The sign between \
thousands, if you give one, may also be left out in a cell. `sfumato describe --check` tells later, for a small price, \
about how many cells cannot be read."""

DATES_FORM_WHY = "Such as 31.12.2026, 12/31/26 or 2026-12-31."
DATES_FORM_MORE = """\
Your example says where day, month and year stand. A day that is not written like this cannot be read, and counts as \
missing. Columns may have forms of their own: see dates in docs/project-file.md."""

KINDS_WHY = "Enter if it is; else what to change, such as: cost=whole, note=out"
KINDS_MORE = """\
This was proposed from names and declared types; nobody looked at the data.
key       an opaque name, such as a patient's number
category  one of a few values that you can list, such as wards
real      a number; whole: a number without fractions
flag      yes or no
date      a day; moment: a day and time
out       queries do not see the column
A declaration is never a danger to privacy: what does not fit is clamped or counts as missing. It decides how \
exact the answers are."""

UNIT_WHY = "The column that names the person, so that all rows of one person are hidden."
NO_UNIT_WHY = "Type the column that names the person; or row, if nobody has more than one row."
UNIT_MORE = """\
Answers will hide everything that one value of this column ever contributed: whether all of a patient's visits are \
in the data or none. The answer `row` hides one single row: somebody with twenty rows would show through. Take it \
only where each person has one row."""
SURE_WHY = "Somebody with several rows would show through."
SURE_MORE = """\
`row` hides one single row, so it protects people only where each has one row. The column seems to name a person: if \
one name may stand in several rows, answer n."""
ROW_WARNING = "One row is hidden, not one person: right only if nobody has more than one row."

OWNER_WHY = "One of {names}; or a key, such as order -> orders.id; or public; or out, to leave the table out."
OWNER_MORE = """\
Rows of a private table belong to somebody, and this column says to whom, in the same words as in the first table. \
If none does, but one leads to a table that knows (items of an order), say where: `order -> orders.id`. Rows that lead \
to nobody are left out of all answers. `public` means that anybody may know every row of it: it is used exactly as it \
is, and hides nobody."""

BOUNDS_SAY = """\
Answer from what you know: a form, a price list, common sense. Not from the
data: bounds taken from the data would tell something about it."""
BOUNDS_WHY = "Such as: 0 5000. What lies outside counts as the nearest; out: not used."
DATES_WHY = "Such as: 2026-01-01 2026-12-31. What lies outside counts as the nearest."
BOUNDS_MORE = """\
The noise on a sum must hide the largest contribution that one person may make, so it grows with the bounds. Too \
wide: more noise. Too narrow: large values count for less, and sums and averages are too small. When in doubt, take \
bounds that nearly all values keep. They can be changed in sfumato.yaml later."""

VALUES_WHY = "With commas. If unknown, a query finds those that many people share."
VALUES_MORE = """\
If you list the values, every one of them appears in answers, also where nobody is. Any other value counts as \
missing. If you do not know them all, leave them unknown: the column becomes a key, and a query shows the groups \
that enough people are in."""

EPSILON_WHY = "Below 1 is strong, 1 is usual, up to 10 is seen in practice, more is weak."
EPSILON_MORE = """\
Epsilon bounds what anybody can learn about one person from all releases together. At 0.1 the odds of any guess \
about somebody change by a factor of 1.1 at most; at 1, of 2.7; at 3, of 20; at 10, of 22,026, which hardly \
protects by itself. Smaller means more noise. The ledger refuses whatever would go beyond it. \
`sfumato explain 1` says more."""

WEAK_WARNING = "That is weak: odds may change by a factor of more than 22,000. Most published guarantees stay below."

DELTA_WHY = "What rare outcomes may add to it: far below 1 / the number of people."
DELTA_MORE = """\
With a thousand people take 1e-5 at most, with a million 1e-8. It makes Gaussian noise possible, and groups that \
are found in the data."""

RELEASE_WHY = "A default; every query may say its own."
RELEASE_MORE = """\
What is left of the budget after a release is for the next ones. By default a fifth of it, so five queries, or more: \
Gaussian releases add up to less than their sum."""

LIMITS_WHY = "A number; or adviser: each query measures it, and what it cuts, for 15 % of its price."
LIMITS_MORE = """\
Somebody with a thousand rows must not move an answer by a thousand. Whoever has more rows than this is weighted \
down as a whole. Fewer rows: less noise, but heavy users count for less. If you know what is usual (three or four \
visits, say), give a number a little above it: then the noise is known before you pay, but not what the \
limit cuts, and answers say at least how much there is."""

PRINCIPAL_WHY = "The ledger writes down who asked for every release."
PRINCIPAL_MORE = "In a file it is a claim; with a ledger in PostgreSQL it is the role that is logged in."

WRITE_WHY = "Also makes the ledger with its key and anchor, and a .gitignore for them."
WRITE_MORE = """\
The ledger is a file that holds the budget and every release. The key signs it, for your eyes only. The anchor keeps \
what was signed, so that an older copy of the ledger is noticed: for real people's data put it on another disk."""
OVERWRITE_WHY = "There is one already. The ledger beside it stays as it is, with what was spent."
OVERWRITE_MORE = "The old file is replaced by the new one; if the project is under git, its history has the old one."
