//! Sick GPUs of a cluster: a real slurmctld, and a real slurmd for each of two nodes with a GPU.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;

use crate::common::sick::{
    SECOND, check_with, machine, messages, ncu, nothing_counts, path, quarantined, slow_on,
};
use crate::common::slurm::Cluster;
use crate::common::stand_in::{Machine, UUID};
use crate::common::{Ran, Report};

/// The GPU of the node `one`, which Slurm prefers, is the second of this machine. Its log says which node measured a slice.
/// sbatch gets no variables of the tests.
const PROLOG: &str = r#"
[launch.slurm]
prolog = [
  '[ "$SLURMD_NODENAME" = two ] || export CUDA_VISIBLE_DEVICES=1',
  'echo "on $SLURMD_NODENAME"',
  '. PATH',
]
"#;

struct Login {
    machine: Machine,
    cluster: Cluster,
}

impl Login {
    fn new() -> Option<Login> {
        Login::with(&["one", "two"])
    }

    fn with(nodes: &[&str]) -> Option<Login> {
        let machine = machine(nodes.len() as u32)?;
        let cluster = Cluster::of_nodes(nodes, 1)?;
        let project = &machine.project;
        let prolog = PROLOG.replace("PATH", &path(&machine, "tmp/prolog"));
        project.write("config.toml", project.read("config.toml") + &prolog);
        Some(Login { machine, cluster })
    }

    /// Checks with further lines of the prolog.
    #[track_caller]
    fn check(&self, prolog: &str, code: i32) -> (Report, Ran) {
        self.machine.project.write("tmp/prolog", prolog);
        let conf = self.cluster.conf();
        let variables = [("SLURM_CONF", conf.to_str().unwrap())];
        let _ = fs::remove_dir_all(self.machine.project.path(".sparsek-gate/slurm"));
        let on = ["--on", "slurm", "--slices", "2"];
        check_with(&self.machine, &variables, &on, code)
    }

    /// The log of a slice of the one run.
    fn log(&self, name: &str) -> String {
        let runs = fs::read_dir(self.machine.project.path(".sparsek-gate/slurm")).unwrap();
        let run = runs.map(|run| run.unwrap().path()).next().unwrap();
        fs::read_to_string(run.join(format!("logs/slice-{name}.log"))).unwrap()
    }
}

/// All variants were measured on one GPU.
#[track_caller]
fn all_on(report: &Report, uuid: &str) {
    let variants = report.0["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 3);
    for variant in variants {
        assert_eq!(variant["current"]["gpu_uuid"], uuid);
    }
}

#[test]
fn a_node_with_a_sick_gpu_costs_one_repeat_on_another_node_and_then_no_run() {
    let Some(login) = Login::new() else { return };
    let machine = &login.machine;
    for (prolog, hook, symptom) in [
        (
            String::new(),
            slow_on("fe", machine),
            "the control bsr_gemm/control reads +3.00 %",
        ),
        (
            format!("export NVML_XID=95 NVML_SICK={SECOND}"),
            String::new(),
            "Xid 95",
        ),
    ] {
        ncu(machine, &hook);
        let (report, ran) = login.check(&prolog, 0);
        ran.says("slice 1/2 is measured once more, not on one: its GPU is sick (")
            .says(symptom);
        all_on(&report, UUID);
        let said = report.message("gpu-sick");
        for part in [
            SECOND,
            symptom,
            "was measured once more on",
            UUID,
            "slices/1-repeat",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(login.log("1-repeat").starts_with("on two\n"));
        assert_eq!(quarantined(machine), [SECOND]);

        // From then on nothing is measured on that node, which is free at once, and no run fails for it.
        ncu(machine, "");
        let (report, ran) = login.check("", 0);
        ran.says("is in quarantine since")
            .says("submitted again, not to one: nothing was measured there");
        all_on(&report, UUID);
        assert_eq!(messages(&report, "gpu-sick"), [""; 0]);
        let lift = ["quarantine", "--lift", SECOND, "--reason", "tried"];
        machine.run(&lift).exits(0);
    }
}

#[test]
fn a_node_that_could_not_measure_gets_no_repeat_either() {
    let Some(login) = Login::with(&["one", "two", "three"]) else {
        return;
    };
    let machine = &login.machine;
    // Slurm takes them by their names: the GPU of the first is in quarantine, that of `three` is slow.
    const THIRD: &str = "GPU-00112233-4455-6677-8899-aabbccddeefd";
    let folder = ".sparsek-gate/state/sparsek-gate/quarantine";
    machine
        .project
        .write(&format!("{folder}/{THIRD}.json"), "{");
    let prolog = "case $SLURMD_NODENAME in one) CUDA_VISIBLE_DEVICES=2 ;; \
                  three) CUDA_VISIBLE_DEVICES=1 ;; *) CUDA_VISIBLE_DEVICES=0 ;; esac";
    ncu(machine, &slow_on("fe", machine));
    let (report, ran) = login.check(prolog, 0);
    ran.says("1 slice is submitted again, not to one: nothing was measured there")
        .says("slice 2/2 is measured once more, not on three");
    all_on(&report, UUID);
    assert!(login.log("2-repeat").starts_with("on two\n"));
}

#[test]
fn what_a_program_does_to_its_slice_brings_no_second_try() {
    let Some(login) = Login::new() else { return };
    let machine = &login.machine;
    ncu(
        machine,
        "case \"$*\" in *--export*v-n_2/capture-1*) folder=\"${*#*--export }\"\n\
         folder=\"${folder%%/profiles/*}/profiles\"\n\
         rm -rf \"$folder\"; ln -s /nowhere/x \"$folder\" ;; esac",
    );
    let (report, ran) = login.check("", 6);
    assert!(!ran.err.contains("submitted again"), "{}", ran.err);
    let denied = report.denied();
    assert!(denied.contains(&"not-measured".to_owned()), "{denied:?}");
}

#[test]
fn without_another_node_what_a_sick_gpu_measured_is_set_aside() {
    let Some(login) = Login::new() else { return };
    let machine = &login.machine;
    ncu(machine, &slow_on("fe", machine));
    for state in ["DRAIN", "DOWN"] {
        let state = format!("state={state}");
        login
            .cluster
            .ask("scontrol", &["update", "nodename=two", &state, "reason=x"]);
        let (report, ran) = login.check("", 6);
        ran.says("no other node measures them: Slurm will not start the slices: ReqNodeNotAvail");
        nothing_counts(&report);
        assert_eq!(quarantined(machine), [""; 0]);
        login
            .cluster
            .until("no job is left", || login.cluster.jobs().is_empty());
    }
    // What was measured before its node gave up gets no second try.
    login
        .cluster
        .ask("scontrol", &["update", "nodename=two", "state=RESUME"]);
    ncu(
        machine,
        "case $* in *capture-2*) echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1 ;; esac",
    );
    let (report, ran) = login.check("", 3);
    assert!(ran.err.contains("slice 2: exit code 3"), "{}", ran.err);
    assert!(!ran.err.contains("submitted again"), "{}", ran.err);
    assert!(!report.denied().is_empty());
}
