//! The results, in tables for people, and their targets.

use std::collections::BTreeMap;

use super::Evaluation;
use super::checks::{Check, Checks};
use super::data::{DURATION, OfGpus, Pair, Recordings};
use super::programs::{LARGE, ProgramPair};
use super::share::Share;
use super::side_by_side::{Answer, Change, Draw};
use super::stored::Counted;
use super::table::table;
use super::targets::Targets;

/// The recorded kernels that are slower on purpose, and what must be caught of each, in percent.
const PLANTED: [(&str, &str, Option<f64>); 4] = [
    ("faults/slower_05", "+0.5 %", None),
    ("faults/slower_1", "+1 %", Some(97.0)),
    ("faults/slower_2", "+2 %", Some(97.0)),
    ("faults/slower_5", "+5 %", Some(97.0)),
];
/// The metrics that must be judged against a stored baseline.
const STORED: [&str; 4] = [DURATION, "dram_bw", "sm_active", "tensor_core"];
/// How much worse a GPU gets that is checked against a stored baseline, in percent.
const STORED_CHANGE: f64 = 5.0;

/// The first three of more launches are no large part of a program.
const FEW_LAUNCHES: usize = 200;

/// The report, as far as it is written.
pub struct Page<'a> {
    recordings: &'a Recordings,
    /// The number of checks for each question, and the seed.
    drawn: (usize, u64),
    /// The same for programs, all of whose kernels a check judges.
    drawn_of_programs: (usize, u64),
    text: String,
    targets: Targets,
}

impl<'a> Page<'a> {
    pub fn new(recordings: &'a Recordings, checks: [usize; 2], seed: u64) -> Page<'a> {
        let [drawn, drawn_of_programs] = checks.map(|count| (count, seed));
        Page {
            recordings,
            drawn,
            drawn_of_programs,
            text: String::new(),
            targets: Targets::default(),
        }
    }

    /// The whole text, with the targets at its end.
    pub fn finish(mut self) -> Evaluation {
        let targets = std::mem::take(&mut self.targets);
        self.part("Targets", &targets.table());
        Evaluation {
            text: self.text,
            missed: targets.missed(),
        }
    }

    fn part(&mut self, heading: &str, text: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        self.text.push_str(&format!("{gap}{heading}\n\n{text}"));
    }

    /// Unchanged kernels, side by side.
    pub fn unchanged(&mut self) {
        let pairs: Vec<&Pair> = self.recordings.unchanged.iter().collect();
        let nothing = |_| Some(Change::Unchanged);
        let all = Checks::draw(self.drawn, "unchanged", &pairs, Draw::SameRounds, nothing);
        let (regressed, failed) = (all.share(Answer::regressed), all.share(Answer::fails));
        let text = format!(
            "{}Worst kernels: {} regressed, {} not passed.\n",
            unchanged_text(&all, ("GPU", gpu), ("kernel", name)),
            most(&all.by(name), Answer::regressed),
            most(&all.by(name), Answer::fails),
        );
        self.part("1. Unchanged kernels, side by side", &text);
        let targets = &mut self.targets;
        targets.at_most("1. unchanged: regressed", regressed, 0.1);
        targets.at_most("1. unchanged: not passed", failed, 0.5);
    }

    /// Kernels that are slower, side by side, as they were recorded.
    pub fn planted(&mut self) {
        let mut rows = Vec::new();
        for (variant, words, limit) in PLANTED {
            let pairs = self.recordings.planted.iter();
            let pairs: Vec<&Pair> = pairs.filter(|pair| pair.variant == variant).collect();
            let nothing = |_| Some(Change::Unchanged);
            let checks = Checks::draw(self.drawn, variant, &pairs, Draw::Rounds, nothing);
            rows.push(caught_row(words, &checks, gpu));
            if let Some(limit) = limit {
                let caught = checks.share(Answer::regressed);
                let what = format!("2. {words}: caught");
                self.targets.at_least(&what, caught, limit);
            }
        }
        let text = table(&caught_header("worst GPU"), rows);
        let heading = "2. Kernels that are slower on purpose, side by side, as recorded";
        self.part(heading, &text);
    }

    /// Changes in the recorded launches of unchanged kernels, side by side.
    pub fn put_in(&mut self) {
        let all: Vec<&Pair> = self.recordings.unchanged.iter().collect();
        let drawn = self.drawn;
        let with = |words: &str, pairs: &[&'a Pair], change: Change| {
            Checks::draw(drawn, words, pairs, Draw::SameRounds, |_| Some(change))
        };
        // Each check has a change of the size that an unchanged one before would have caught.
        let claims = |draw| Checks::draw(drawn, "claims", &all, draw, |_| Some(Change::Unchanged));
        let claimed = |claims: &Checks, draw| {
            let change = |number| {
                let claim = claims.answer(number);
                (!claim.fails()).then_some(Change::Longer(claim.would_have_caught))
            };
            Checks::draw(drawn, "claimed", &all, draw, change)
        };
        let (of_rounds, of_processes) = (claims(Draw::SameRounds), claims(Draw::SameProcesses));
        let by_kernel = of_processes.by(name);
        let would = |pair: &&&Pair| {
            let checks = by_kernel.get(&*pair.variant);
            checks.is_some_and(|checks| checks.would_have_caught() <= 1.0)
        };
        let quiet: Vec<&Pair> = all.iter().filter(would).copied().collect();
        let percent = Change::Longer(1.0);
        let questions = [
            (
                "what a check would have caught",
                claimed(&of_processes, Draw::SameProcesses),
                Some(99.0),
            ),
            (
                "the same, of drawn rounds",
                claimed(&of_rounds, Draw::SameRounds),
                None,
            ),
            (
                "+1 %, if it would have been caught",
                with("quiet", &quiet, percent),
                Some(97.0),
            ),
            ("+1 %, all kernels", with("+1 %", &all, percent), None),
            (
                "slowest tenth of the launches doubled",
                with("tenth", &all, Change::TenthDoubled),
                Some(100.0),
            ),
            (
                "first three launches doubled",
                with("first", &all, Change::FirstThreeDoubled),
                Some(100.0),
            ),
        ];
        let mut rows = Vec::new();
        for (words, checks, limit) in &questions {
            rows.push(caught_row(words, checks, name));
            if let Some(limit) = limit {
                let caught = checks.share(Answer::regressed);
                let what = format!("3. {words}: caught");
                self.targets.at_least(&what, caught, *limit);
            }
        }
        let spread = with("spread", &all, Change::LongerInThreeTimesTheSpread);
        let words = "+3 % in three times the spread";
        rows.push(caught_row(words, &spread, name));
        let passed = spread.share(|answer| !answer.fails());
        let what = format!("3. {words}: passed");
        self.targets.at_most(&what, passed, 5.0);
        let text = format!(
            "{}\nOf drawn rounds, what a check would have caught is too small: three rounds, drawn of three, are one\nand the same in one of nine checks. \"If it would have been caught\": kernels of which half of the\nunchanged checks would have caught 1 % or less.\n",
            table(&caught_header("worst kernel"), rows),
        );
        let heading =
            "3. Changes put into the recorded launches of unchanged kernels, side by side";
        self.part(heading, &text);
    }

    /// Whole programs, side by side, as they run. So few rounds were recorded of each that single processes
    /// are drawn: a drift between rounds becomes noise.
    pub fn programs(&mut self) {
        let all: Vec<&ProgramPair> = self.recordings.programs.iter().collect();
        let few = all.iter().filter(|one| one.launches() <= FEW_LAUNCHES);
        let few: Vec<&ProgramPair> = few.copied().collect();
        let drawn = self.drawn_of_programs;
        let with = |words: &str, pairs: &[&'a ProgramPair], change: Change| {
            Checks::draw(drawn, words, pairs, Draw::SameProcesses, |_| Some(change))
        };
        let unchanged = with("programs", &all, Change::Unchanged);
        let recorded: Vec<Answer> = all.iter().map(|one| one.as_recorded()).collect();
        let count = |has: fn(Answer) -> bool| recorded.iter().filter(|one| has(**one)).count();
        let text = format!(
            "{}As recorded, {} of the {} comparisons regress, and {} do not pass.\n",
            unchanged_text(&unchanged, ("program", name), ("GPU", gpu)),
            count(Answer::regressed),
            recorded.len(),
            count(Answer::fails),
        );
        self.part("5. Unchanged programs, side by side, as they run", &text);
        let claimed = |number: usize| {
            let claim = unchanged.answer(number);
            (!claim.fails()).then_some(Change::Longer(claim.would_have_caught))
        };
        let draw = Draw::SameProcesses;
        let claimed = Checks::draw(drawn, "programs claimed", &all, draw, claimed);
        let tenth = with("programs tenth", &all, Change::TenthDoubled);
        let spread = with("programs spread", &all, Change::LongerInThreeTimesTheSpread);
        let questions = [
            ("what a check would have caught", claimed, 99.0),
            (
                "+1 % in all kernels",
                with("programs +1 %", &all, Change::Longer(1.0)),
                97.0,
            ),
            (
                "+1 % in one kernel",
                with("kernel +1 %", &all, Change::LargestLonger(1.0)),
                97.0,
            ),
            ("slowest tenth of the launches doubled", tenth, 100.0),
            (
                "first three launches doubled",
                with("programs first", &few, Change::FirstThreeDoubled),
                100.0,
            ),
        ];
        let mut rows = Vec::new();
        for (words, checks, limit) in &questions {
            rows.push(caught_row(words, checks, name));
            let what = format!("6. {words}: caught");
            let caught = checks.share(Answer::regressed);
            self.targets.at_least(&what, caught, *limit);
        }
        let words = "+3 % in three times the spread";
        rows.push(caught_row(words, &spread, name));
        let passed = spread.share(|answer| !answer.fails());
        let text = format!(
            "{}\n\"One kernel\" is that with the most time, if it has {LARGE} % or more, and else every kernel; so in the\nlines below it. The first three launches were doubled where there are at most {FEW_LAUNCHES}.\n",
            table(&caught_header("worst program"), rows),
        );
        self.part(
            "6. Changes put into the recorded launches of programs",
            &text,
        );
        let (regressed, failed) = (
            unchanged.share(Answer::regressed),
            unchanged.share(Answer::fails),
        );
        let targets = &mut self.targets;
        targets.at_most("5. unchanged programs: regressed", regressed, 0.1);
        targets.at_most("5. unchanged programs: not passed", failed, 0.5);
        targets.at_most(&format!("6. {words}: passed"), passed, 5.0);
    }

    /// Every GPU against a baseline of two others.
    pub fn stored(&mut self) {
        let gated = STORED.map(|metric| (metric, Vec::new()));
        let mut by_metric: BTreeMap<&str, Vec<(&OfGpus, Counted)>> = gated.into();
        for kernel in &self.recordings.stored {
            let change = (kernel.metric == DURATION).then_some(STORED_CHANGE);
            let counted = (kernel, kernel.checks(change));
            by_metric.entry(&kernel.metric).or_default().push(counted);
        }
        let mut rows = Vec::new();
        for (metric, kernels) in &by_metric {
            let of = |share: fn(&Counted) -> Share| {
                let kernels = kernels.iter();
                let named = kernels.map(|(kernel, it)| (&*kernel.variant, share(it)));
                named.collect::<Vec<_>>()
            };
            let (regressed, failed) = (of(|it| it.regressed), of(|it| it.failed));
            let caught = of(|it| it.caught);
            let all = |shares: &[(&str, Share)]| shares.iter().map(|(_, it)| *it).sum::<Share>();
            let gpus = || kernels.iter().map(|(kernel, _)| kernel.gpus.len());
            let (fewest, most) = (gpus().min().unwrap_or(0), gpus().max().unwrap_or(0));
            let mut row = vec![
                (*metric).to_owned(),
                kernels.len().to_string(),
                format!("{fewest} to {most}"),
                all(&failed).of.to_string(),
                percent(all(&regressed)),
                percent(all(&failed)),
                highest(failed.iter().copied()),
            ];
            let what = format!("4. unchanged {metric}: not passed");
            self.targets.at_most(&what, all(&failed), 0.1);
            if *metric == DURATION {
                row.extend([percent(all(&caught)), lowest(caught.iter().copied())]);
                let what = format!("4. {metric} +{STORED_CHANGE} %: caught");
                self.targets.at_least(&what, all(&caught), 90.0);
            }
            rows.push(row);
        }
        let caught = format!("+{STORED_CHANGE} % caught");
        let header = [
            "metric", "kernels", "GPUs", "checks", "regressed", "not passed", "worst kernel",
            &caught, "worst kernel",
        ];
        let heading = "4. Every GPU against a stored baseline of two others, each pair of them";
        self.part(heading, &table(&header, rows));
    }
}

/// How a column calls what its values have in common, and how a check is put there.
type By = (&'static str, for<'c> fn(&Check<'c>) -> &'c str);

/// How the checks of what did not change ended, in groups, and how many others each has.
fn unchanged_text(all: &Checks, (group, group_of): By, (other, other_of): By) -> String {
    let row = |(name, checks): (&str, &Checks)| {
        vec![
            name.to_owned(),
            checks.by(other_of).len().to_string(),
            checks.count().to_string(),
            percent(checks.share(Answer::regressed)),
            percent(checks.share(Answer::fails)),
            format!("{:.1}", checks.processes()),
            format!("{:+.2} %", checks.would_have_caught()),
        ]
    };
    let groups = all.by(group_of);
    let rows = groups.iter().map(|(name, checks)| (*name, checks));
    let rows = rows.chain([("all", all)]).map(row).collect();
    let others = format!("{other}s");
    let header = [
        group, &others, "checks", "regressed", "not passed", "processes", "would have caught",
    ];
    format!(
        "{}\nAt 95 % confidence, on these GPUs, at most {:.3} % regress and {:.3} % do not pass.\n",
        table(&header, rows),
        all.share(Answer::regressed).bound(),
        all.share(Answer::fails).bound(),
    )
}

fn name<'a>(check: &Check<'a>) -> &'a str {
    check.name
}

fn gpu<'a>(check: &Check<'a>) -> &'a str {
    check.gpu
}

fn percent(share: Share) -> String {
    format!("{:.2} %", share.percent())
}

fn caught_header(worst: &str) -> [&str; 7] {
    [
        "change", "checks", "caught", worst, "unclear", "passed", "processes",
    ]
}

/// How the checks of a change ended. A change must be caught of each group.
fn caught_row<'a>(
    words: &str,
    checks: &Checks<'a>,
    group: fn(&Check<'a>) -> &'a str,
) -> Vec<String> {
    let groups = checks.by(group);
    let groups = groups.iter();
    let caught = groups.map(|(name, it)| (*name, it.share(Answer::regressed)));
    vec![
        words.to_owned(),
        checks.count().to_string(),
        percent(checks.share(Answer::regressed)),
        lowest(caught),
        percent(checks.share(|answer| answer.fails() && !answer.regressed())),
        percent(checks.share(|answer| !answer.fails())),
        format!("{:.1}", checks.processes()),
    ]
}

fn most(groups: &BTreeMap<&str, Checks>, has: fn(Answer) -> bool) -> String {
    let groups = groups.iter();
    highest(groups.map(|(name, checks)| (*name, checks.share(has))))
}

fn highest<'n>(shares: impl Iterator<Item = (&'n str, Share)>) -> String {
    shown(shares.max_by(|one, other| one.1.percent().total_cmp(&other.1.percent())))
}

fn lowest<'n>(shares: impl Iterator<Item = (&'n str, Share)>) -> String {
    shown(shares.min_by(|one, other| one.1.percent().total_cmp(&other.1.percent())))
}

fn shown(named: Option<(&str, Share)>) -> String {
    match named {
        // Where it is so in all or in none, no one is the worst.
        Some((name, share)) if (1..share.of).contains(&share.hits) => {
            format!("{} {name}", percent(share))
        }
        Some((_, share)) => percent(share),
        None => String::new(),
    }
}
