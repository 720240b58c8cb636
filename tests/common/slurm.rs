//! A cluster on loopback that a real slurmctld and a real slurmd run: GPUs that are none,
//! everything in a temporary folder, ports of its own.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use super::{PATIENCE, aloud};

/// A cluster; it ends with everything that runs on it when it is dropped.
pub struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// How many GPUs the one node has.
const GPUS: u32 = 2;

impl Cluster {
    /// Of one node. `None`, and said aloud, where Slurm is not installed.
    pub fn start() -> Option<Cluster> {
        let (Some(controller), Some(node)) = (found("slurmctld"), found("slurmd")) else {
            aloud(
                "SKIPPED: Slurm is not installed (apt-get install slurmctld slurmd slurm-client)",
            );
            return None;
        };
        let cluster = Cluster {
            folder: tempfile::Builder::new().prefix("slurm").tempdir().unwrap(),
            daemons: Vec::new(),
        };
        let folder = cluster.folder.path();
        fs::create_dir(folder.join("state")).unwrap();
        fs::create_dir(folder.join("spool")).unwrap();
        for gpu in 0..GPUS {
            std::os::unix::fs::symlink("/dev/null", folder.join(format!("gpu{gpu}"))).unwrap();
        }
        let gres = format!(
            "NodeName=localhost Name=gpu Type=h200 Count={GPUS} File={}/gpu[0-{}]\n",
            folder.display(),
            GPUS - 1
        );
        fs::write(folder.join("gres.conf"), gres).unwrap();
        fs::write(cluster.conf(), configuration(folder)).unwrap();
        let mut cluster = cluster;
        for (program, arguments) in [
            (controller, &["-D", "-i"][..]),
            (node, &["-D", "-N", "localhost"]),
        ] {
            let mut daemon = Command::new(program);
            daemon.args(arguments).env("SLURM_CONF", cluster.conf());
            daemon
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            cluster.daemons.push(daemon.spawn().unwrap());
        }
        let idle = || {
            let states = cluster.ask("sinfo", &["--noheader", "--Node", "--format=%T"]);
            states.lines().next().map(str::trim) == Some("idle")
        };
        cluster.until("the node is idle", idle);
        Some(cluster)
    }

    /// The configuration's file, for `SLURM_CONF`.
    pub fn conf(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// What a command of Slurm prints.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.conf());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The states of the slices that have not ended.
    pub fn jobs(&self) -> Vec<String> {
        let left = self.ask("squeue", &["--noheader", "--array", "--format=%T"]);
        left.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Waits until something is so.
    #[track_caller]
    pub fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(
                Instant::now() < end,
                "{what}: not within {PATIENCE:?}\n{}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Processes of jobs: what descends from a slurmstepd of this cluster is marked by its
    /// configuration.
    pub fn processes(&self) -> Vec<String> {
        let wanted = format!("SLURM_CONF={}", self.conf().display());
        let own: Vec<u32> = self.daemons.iter().map(Child::id).collect();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers
            .filter(|pid| !own.contains(pid))
            .filter(|pid| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let mut variables = environ.split(|byte| *byte == 0);
                variables.any(|variable| variable == wanted.as_bytes())
            })
            .map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
            })
            // The controller's own helper.
            .filter(|line| !line.contains("slurmscriptd") && !line.contains("slurmctld"))
            .collect()
    }

    fn logs(&self) -> String {
        let text = |name: &str| {
            let path = self.folder.path().join(name);
            fs::read_to_string(path).unwrap_or_default()
        };
        let files = fs::read_dir(self.folder.path()).unwrap().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let logs = names.filter(|name| name.ends_with(".log"));
        logs.map(|name| text(&name)).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.daemons.len() >= 2 {
            for job in self.ask("squeue", &["--noheader", "--format=%A"]).lines() {
                self.ask("scancel", &["--signal=KILL", "--full", job.trim()]);
                self.ask("scancel", &[job.trim()]);
            }
            let end = Instant::now() + Duration::from_secs(10);
            while !self.jobs().is_empty() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// A daemon, which Debian puts where only root searches.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.exists())
}

/// Ports that nobody listens on now, and that nobody gets before the daemons do. They lie below those that
/// the system chooses itself, for every connection (`/proc/sys/net/ipv4/ip_local_port_range`); each test
/// process has a hundred of its own, and each cluster others.
fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 120).unwrap() * 100;
    let own = (0..100).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed) % 100);
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    let free: Vec<u16> = own.filter(is_free).take(count).collect();
    assert_eq!(free.len(), count, "no free ports from {first} on");
    free
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Nothing is looked up or waited for, and ended jobs are forgotten after two minutes.
fn configuration(folder: &Path) -> String {
    let (folder, user) = (folder.display(), user());
    let ports = free_ports(2);
    let (controller, node) = (ports[0], ports[1]);
    format!(
        "ClusterName=gate
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=2
MinJobAge=120
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName=localhost NodeAddr=127.0.0.1 Port={node} CPUs=16 RealMemory=100 State=UNKNOWN Gres=gpu:h200:{GPUS}
PartitionName=gpu Nodes=localhost Default=YES MaxTime=24:00:00 State=UP
"
    )
}
