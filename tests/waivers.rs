//! `[[waiver]]`: what it lets pass, until when, and what it never covers.

use crate::common::{Project, samples, scale};
use serde_json::Value as Json;

const DURATION: &str = "duration";

fn waive(project: &Project, metric: &str, expires: &str) {
    let config = project.read("config.toml");
    let waiver = format!(
        "\n[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"{metric}\"\n\
         reason = \"the new driver\"\nwho = \"Ada\"\nexpires = {expires}\n"
    );
    project.write("config.toml", config + &waiver);
}

/// The last day of a waiver so many days from now, in UTC.
fn day(from_now: i64) -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let day = now.date().checked_add(jiff::Span::new().days(from_now));
    day.unwrap().to_string()
}

fn slower() -> Project {
    let project = Project::steady();
    project.edit_profile("cp_async", |profile| scale(profile, DURATION, 1.07));
    project
}

#[test]
fn a_waived_regression_passes_with_a_warning_that_says_who_answers() {
    // TOML's own date and a text.
    for expires in [day(30), format!("\"{}\"", day(30))] {
        let project = slower();
        project.check(&["cp_async"], 1);
        waive(&project, DURATION, &expires);
        let report = project.check(&["cp_async"], 0);
        assert_eq!(report.denied(), Vec::<String>::new());
        let message = report.message("regressed");
        let words = format!("; waived until {} by Ada: the new driver", day(30));
        assert!(message.ends_with(&words), "{message}");
        assert!(report.warns("regressed"));
        // What was found stays as it was found.
        assert_eq!(report.verdict("cp_async", DURATION), "regressed");
    }
}

#[test]
fn a_waiver_covers_as_much_as_it_says_or_twice_the_tolerance() {
    // The tolerance of the duration is 4 %.
    for (factor, up_to, code) in [
        (1.07, "", 0),
        (1.09, "", 1),
        (1.09, "up_to = \"10 %\"\n", 0),
        (1.11, "up_to = \"10 %\"\n", 1),
        (1.2, "up_to = \"100000\"\n", 0),
        (5.0, "up_to = \"100000\"\n", 1),
    ] {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, DURATION, factor));
        project.check(&["cp_async"], 1);
        waive(&project, DURATION, &day(30));
        project.write("config.toml", project.read("config.toml") + up_to);
        let report = project.check(&["cp_async"], code);
        assert_eq!(report.warns("waiver-unused"), code == 1, "{factor} {up_to}");
        if code == 1 {
            report.tells_all(
                "waiver-unused",
                &["covers less", "changed by +", "it covers up to "],
            );
        }
    }
}

#[test]
fn of_a_metric_of_which_more_is_better_a_waiver_covers_so_much_less() {
    for (up_to, code) in [("100", 0), ("1", 1)] {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, "sm_active", 0.5));
        waive(&project, "sm_active", &day(30));
        let config = project.read("config.toml");
        project.write("config.toml", format!("{config}up_to = \"{up_to}\"\n"));
        project.check(&["cp_async"], code);
    }
}

#[test]
fn a_waiver_past_its_last_day_lets_nothing_pass_and_is_told() {
    let project = slower();
    waive(&project, DURATION, "2020-02-29");
    let report = project.check(&["cp_async"], 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert!(report.warns("waiver-unused"));
    report.tells_all("waiver-unused", &["2020-02-29"]);
    // The reference of findings names the key that is written.
    let cause = sparsek_gate::finding::Code::WaiverUnused.cause();
    let key = cause.split('`').nth(1).unwrap();
    assert!(
        project.read("config.toml").contains(&format!("\n{key} = ")),
        "{cause}"
    );
}

#[test]
fn nothing_that_is_not_about_a_value_is_ever_waived() {
    type Case = (&'static str, i32, fn(&Project));
    let cases: [Case; 3] = [
        ("tampered", 4, |project| {
            let path = Project::baseline_path("cp_async", "norm.txt");
            project.write(&path, project.read(&path) + "\n");
        }),
        ("not-measured", 6, |project| {
            project.edit_profile("cp_async", |profile| {
                *samples(profile, DURATION)[3] = Json::Null;
            });
        }),
        ("work-changed", 4, |project| {
            // What is declared is a property of the suite, and of no metric.
            let half = |profile: &mut Json| scale(profile, "flop_wmma", 0.5);
            project.edit_profile("cp_async", half);
            project.forge("cp_async", half);
        }),
    ];
    for (code, exit, edit) in cases {
        let project = Project::steady();
        edit(&project);
        for metric in [DURATION, "flop_wmma"] {
            waive(&project, metric, &day(30));
        }
        let report = project.check(&["cp_async"], exit);
        assert!(report.denied().contains(&code.to_owned()), "{code}");
    }
}
