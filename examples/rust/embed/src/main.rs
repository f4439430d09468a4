//! What a server does, in Rust, with a kernel of its own: first with a mistake to see how it is reported, then
//! right, compiled ahead of time; the context is sealed, several threads launch, the counters are read. Runs
//! on the best device: an NVIDIA GPU, the CPU, or the interpreter where the CPU module is not installed.
mod gpu;

use std::error::Error;
use std::thread;

use gpu::Gpu;
use tilejit::{Context, ContextOptions, Device, Kernel, LogLevel, Program, WarmOptions};

type Failure = Box<dyn Error + Send + Sync>;

/// Y = alpha · X / (1 + |X|), row by row; M and N are known at launch only.
const PROGRAM: &str = "tl 1.0
kernel soft_sign(M: dim, N: dim; t: dtype = f32, bm: int = 16, bn: int = 64) {
  in X: tensor<t>[M, N], alpha: f32
  out Y: tensor<t>[M, N]
  launch n in ceildiv(N, bn), m in ceildiv(M, bm) {
    x = alloc_fragment<f32>[bm, bn]
    copy X[m*bm, n*bn] -> x
    parallel r, c in [bm, bn] { x[r, c] = alpha * x[r, c] / (1.0 + abs(x[r, c])) }
    copy x -> Y[m*bm, n*bn]
  }
}
";

fn open() -> Result<Context, tilejit::Error> {
    fn log(level: LogLevel, message: &str) {
        if level != LogLevel::Info {
            eprintln!("tilejit: {}", message);
        }
    }
    ContextOptions::new().log(log).create()
}

/// The error with the line that it stands in, and a mark below the place.
fn explain(error: &tilejit::Error, text: &str) -> String {
    let mut out = format!("{:?}: {}\n", error.status(), error.message());
    if let Some(span) = error.span() {
        let line = text.lines().nth(span.line as usize - 1).unwrap_or("");
        out += &format!(
            "{:3} | {}\n    | {:>width$}\n",
            span.line,
            line,
            "^",
            width = span.column as usize
        );
    }
    out
}

/// A device and, for a GPU, its memory.
struct Server<'a> {
    kernel: Kernel,
    device: &'a Device,
    gpu: Option<Gpu>,
}

impl Server<'_> {
    fn launch(&self, x: &[f32], y: &mut [f32], shape: &[i64]) -> Result<(), Failure> {
        let launch = self.kernel.launch(self.device);
        match &self.gpu {
            None => launch.input(x, shape).output(y, shape).scalar(2.5).run()?,
            Some(gpu) => {
                let (x, out) = (gpu.upload(x)?, gpu.upload(y)?);
                // Both buffers outlive the launch: the download waits for it.
                let launch = unsafe { launch.tensor(x.tensor(shape)).tensor(out.tensor(shape)) };
                launch.scalar(2.5).run()?;
                out.download(y)?;
            }
        }
        Ok(())
    }

    fn work(&self, rows: usize) -> Result<(), Failure> {
        const COLUMNS: usize = 101;
        let x: Vec<f32> = (0..rows * COLUMNS)
            .map(|i| (i % 201) as f32 / 10. - 10.)
            .collect();
        let mut y = vec![f32::NAN; x.len()];
        self.launch(&x, &mut y, &[rows as i64, COLUMNS as i64])?;
        for (x, y) in x.iter().zip(&y) {
            let expected = 2.5 * x / (1. + x.abs());
            if !((y - expected).abs() <= 1e-6) {
                return Err(format!("{} instead of {}", y, expected).into());
            }
        }
        Ok(())
    }

    fn serve(&self) -> Result<(), Failure> {
        thread::scope(|scope| {
            let threads: Vec<_> = (1..5)
                .map(|t| scope.spawn(move || self.work(17 * t)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|t| t.join().expect("a thread"))
        })
    }
}

/// Into the cache; what is there already is left alone.
fn warm(context: &Context, device: &Device) -> Result<(), tilejit::Error> {
    let plan = format!("plan = 1\n[[kernel]]\nsource = '''{}'''\n", PROGRAM);
    let options = WarmOptions {
        targets: vec![device.target.clone()],
        ..WarmOptions::default()
    };
    context.warm(&plan, &options).map(|_| ())
}

fn main() -> Result<(), Failure> {
    let context = open()?;
    let devices = context.devices()?;
    let device = devices
        .iter()
        .find(|d| d.uses_host_memory() || d.backend == "cuda")
        .ok_or("no device whose memory this program can use")?;
    let gpu = match device.uses_host_memory() {
        true => None,
        false => Some(Gpu::open(device.ordinal)?),
    };
    println!("device: {}", device.name);

    let mistaken = PROGRAM.replace("-> x\n", "-> xx\n");
    match context.compile(&Program::source(mistaken.as_str()), device) {
        Ok(_) => return Err("it compiled?".into()),
        Err(error) => print!("{}", explain(&error, &mistaken)),
    }

    warm(&context, device)?;
    context.seal()?;
    let before = context.stats()?.compiles;

    let kernel = context.compile(&Program::source(PROGRAM), device)?;
    Server {
        kernel,
        device,
        gpu,
    }
    .serve()?;
    println!("4 threads, all right");

    let stats = context.stats()?;
    println!(
        "cache: {} hits, {} compiles ({})",
        stats.hits, stats.compiles, stats.location
    );
    println!("compiled after sealing: {}", stats.compiles - before);
    if stats.compiles != before {
        return Err("something was compiled after sealing".into());
    }
    Ok(())
}
