//! The safe interface: that it passes on what the library says, and refuses what would not be safe.
use std::error::Error as _;
use std::thread;

use tilejit::*;

const SCALE: &str = "tl 1.0
kernel scale(M: dim, N: dim) {
  in X: tensor<f32>[M, N] strides[?, 1], s: f32, k: i32
  out Y: tensor<f32>[M, N]
  launch m in M, n in ceildiv(N, 32) {
    x = alloc_fragment<f32>[32]
    copy X[m, n*32:] -> x
    parallel i in 32 { x[i] = x[i]*s + f32(k) }
    copy x -> Y[m, n*32:]
  }
}
";

fn context() -> Context {
    ContextOptions::new()
        .cache_mode(CacheMode::Memory)
        .create()
        .unwrap()
}

/// The interpreter, which is always there.
fn reference(context: &Context) -> Device {
    context.find_device("reference").unwrap()
}

fn add(context: &Context) -> Kernel {
    context
        .compile(&Program::family("vector_add"), &reference(context))
        .unwrap()
}

fn scale(context: &Context) -> Kernel {
    context
        .compile(&Program::source(SCALE), &reference(context))
        .unwrap()
}

#[test]
fn launches_on_slices_with_scalars() {
    let context = context();
    let device = reference(&context);
    let x = [1f32, 2., 3., 4., 5., 6.];
    let mut y = [0f32; 6];
    // An integer does for a float.
    scale(&context)
        .launch(&device)
        .input(&x, &[2, 3])
        .output(&mut y, &[2, 3])
        .scalar(2)
        .scalar(10)
        .run()
        .unwrap();
    assert_eq!(y, [12., 14., 16., 18., 20., 22.]);
}

#[test]
fn launches_on_addresses_with_strides() {
    let context = context();
    let device = reference(&context);
    let x = [1f32, 2., -1., 3., 4., -1.];
    let mut y = [0f32; 4];
    let tensor = RawTensor {
        data: x.as_ptr() as *mut _,
        dtype: Dtype::F32,
        shape: vec![2, 2],
        strides: Some(vec![3, 1]),
    };
    let kernel = scale(&context);
    let launch = unsafe { kernel.launch(&device).tensor(tensor) };
    launch
        .output(&mut y, &[2, 2])
        .scalar(1.0)
        .scalar(0)
        .run()
        .unwrap();
    assert_eq!(y, [1., 2., 3., 4.]);
}

#[test]
fn describes_the_signature() {
    let context = context();
    let s = scale(&context).signature().unwrap();
    assert_eq!((s.name.as_str(), s.target.as_str()), ("scale", "reference"));
    assert_eq!(s.tensors[1].name, "Y");
    assert_eq!(s.tensors[1].access, Access::Out);
    assert_eq!(s.tensors[1].dtype, Some(Dtype::F32));
    assert_eq!(s.tensors[1].shape, "[M, N]");
    assert_eq!(s.dims, ["M", "N"]);
    assert_eq!(s.strides, ["X.stride0"]);
    assert_eq!(s.scalars[1].name, "k");
    assert_eq!(s.scalars[1].dtype, Some(Dtype::I32));
    let ir = scale(&context).text(Text::Ir).unwrap().to_vec();
    assert!(String::from_utf8(ir).unwrap().contains("kernel scale"));
}

#[test]
fn errors_carry_code_place_and_message() {
    let context = context();
    let text = "tl 1.0\nkernel k(N: dim) {\n  in X: tensor<f33>[N]\n}\n";
    let error = context
        .compile(&Program::source(text), &reference(&context))
        .err()
        .unwrap();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.domain(), Domain::Tilejit);
    assert_eq!(error.span().unwrap().line, 3);
    assert!(error.message().contains("f33"), "{}", error);
    assert!(error.to_string().starts_with("3:"), "{}", error);
    assert!(error.source().is_none());
    // The next failure leaves it alone.
    context.device(1000).err().unwrap();
    assert!(error.message().contains("f33"));
}

#[test]
fn what_would_not_be_safe_or_cannot_be_meant_is_refused() {
    let context = context();
    let device = reference(&context);
    let add = add(&context);
    let scale = scale(&context);
    let x = [0f32; 4];
    let bytes = [0u8; 17];
    let mut y = [0f32; 4];
    let mut z = [0f32; 4];
    let rows: Vec<(&str, Result<()>)> = vec![
        (
            "'C' is written",
            add.launch(&device)
                .input(&x, &[4])
                .input(&x, &[4])
                .input(&x, &[4])
                .run(),
        ),
        (
            "a slice of 16 bytes was given for the shape [5] of f32",
            add.launch(&device)
                .input(&x, &[5])
                .input(&x, &[5])
                .output(&mut y, &[5])
                .run(),
        ),
        (
            "for the shape [-4]",
            add.launch(&device).input(&x, &[-4]).run(),
        ),
        (
            "for the shape [4611686018427387904, 8]",
            add.launch(&device).input(&x, &[1 << 62, 8]).run(),
        ),
        (
            "an earlier tensor",
            add.launch(&device)
                .input(&x, &[4])
                .input(&x[..3], &[3])
                .output(&mut z, &[4])
                .run(),
        ),
        ("3 tensors", add.launch(&device).input(&x, &[4]).run()),
        (
            "bytes was given",
            add.launch(&device)
                .input_bytes(&bytes, Dtype::F32, &[4])
                .run(),
        ),
        (
            "not aligned",
            // One of two neighbours is odd.
            add.launch(&device)
                .input_bytes(&bytes[..16], Dtype::F32, &[4])
                .input_bytes(&bytes[1..], Dtype::F32, &[4])
                .run(),
        ),
        (
            "has dtype i32",
            add.launch(&device)
                .input(&[1i32; 4], &[4])
                .input(&x, &[4])
                .output(&mut [0f32; 4], &[4])
                .run(),
        ),
        (
            "a float, 1.5, was given for a scalar of type i32",
            scale
                .launch(&device)
                .input(&x, &[2, 2])
                .output(&mut [0f32; 4], &[2, 2])
                .scalar(1.0)
                .scalar(1.5)
                .run(),
        ),
        (
            "NUL",
            context
                .compile(&Program::family("vector\0add"), &device)
                .map(|_| ()),
        ),
        (
            "no device of backend \"abacus\"; there are",
            context.find_device("abacus").map(|_| ()),
        ),
        (
            "source",
            context.compile(&Program::source(""), &device).map(|_| ()),
        ),
    ];
    for (expected, result) in rows {
        let error = result
            .err()
            .unwrap_or_else(|| panic!("accepted: {}", expected));
        assert!(
            error.message().contains(expected),
            "{:?} is not in {:?}",
            expected,
            error.message()
        );
    }
}

#[test]
fn slices_are_refused_where_memory_is_not_the_hosts() {
    let context = context();
    // A device that is not here will do: nothing gets that far.
    let mut gpu = reference(&context);
    gpu.backend = "cuda".into();
    let error = add(&context)
        .launch(&gpu)
        .input(&[1f32], &[1])
        .run()
        .err()
        .unwrap();
    assert!(error.message().contains("host memory"), "{}", error);
}

#[test]
fn handles_are_shared_and_kernels_keep_their_context() {
    let context = context();
    let device = reference(&context);
    let kernel = add(&context);
    drop(context.clone());
    drop(context);
    let copy = kernel.clone();
    drop(kernel);
    let mut c = [0f32];
    copy.launch(&device)
        .input(&[1f32], &[1])
        .input(&[2f32], &[1])
        .output(&mut c, &[1])
        .run()
        .unwrap();
    assert_eq!(c, [3.]);
}

#[test]
fn one_kernel_serves_many_threads() {
    let context = context();
    let device = reference(&context);
    let kernel = add(&context);
    thread::scope(|scope| {
        for t in 1..5usize {
            let (kernel, device) = (&kernel, &device);
            scope.spawn(move || {
                let (a, b) = (vec![t as f32; 100 * t], vec![1f32; 100 * t]);
                let mut c = vec![0f32; 100 * t];
                let n = [100 * t as i64];
                kernel
                    .launch(device)
                    .input(&a, &n)
                    .input(&b, &n)
                    .output(&mut c, &n)
                    .run()
                    .unwrap();
                assert!(c.iter().all(|&x| x == t as f32 + 1.));
            });
        }
    });
}

#[test]
fn a_sealed_context_compiles_nothing() {
    let context = context();
    let device = reference(&context);
    add(&context);
    context.seal().unwrap();
    add(&context);
    let error = context
        .compile(&Program::family("softmax"), &device)
        .err()
        .unwrap();
    assert_eq!(
        (error.status(), error.reason()),
        (Status::Unavailable, Reason::NotReady)
    );
    assert!(error.log().contains("softmax"), "{}", error.log());
    assert_eq!(context.stats().unwrap().compiles, 1);
}

#[test]
fn parameters_are_given_in_rusts_own_types() {
    let context = context();
    let program = Program::family("gemm")
        .param("t", "f32")
        .param("tb", false)
        .param("N", 3);
    let kernel = context.compile(&program, &reference(&context)).unwrap();
    assert_eq!(kernel.signature().unwrap().dims, ["M", "K"]);
    assert!(families().contains(&"gemm"));
    assert!(version() > 0);
}

/// Every dtype reaches the library as itself.
#[test]
fn dtypes_arrive_as_themselves() {
    let context = context();
    let device = reference(&context);
    for dtype in (0..).map_while(Dtype::from_raw) {
        let text = format!(
            "tl 1.0\nkernel k(N: dim) {{\n  in X: tensor<{0}>[N]\n  out Y: tensor<{0}>[N]\n  launch n in N {{\n    \
             x = alloc_fragment<{0}>[1]\n    copy X[n] -> x\n    copy x -> Y[n]\n  }}\n}}\n",
            dtype.name()
        );
        let kernel = context.compile(&Program::source(text), &device).unwrap();
        // Aligned for all of them.
        let (x, mut y) = ([0x0101010101010101u64], [0u64]);
        let size = dtype.size();
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(x.as_ptr() as *const u8, size),
                std::slice::from_raw_parts_mut(y.as_mut_ptr() as *mut u8, size),
            )
        };
        kernel
            .launch(&device)
            .input_bytes(from, dtype, &[1])
            .output_bytes(to, dtype, &[1])
            .run()
            .unwrap();
        assert_eq!(from, to, "{}", dtype.name());
    }
}

#[test]
fn the_log_is_called() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static WARNINGS: AtomicUsize = AtomicUsize::new(0);
    fn log(level: LogLevel, message: &str) {
        if level == LogLevel::Warning && message.contains("/no/such.pack") {
            WARNINGS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let options = ContextOptions::new()
        .cache_mode(CacheMode::Memory)
        .pack("/no/such.pack")
        .log(log);
    add(&options.create().unwrap());
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 1);
}

#[cfg(feature = "experimental")]
#[test]
fn plans_are_warmed_and_requests_queried() {
    let context = context();
    let plan = "plan = 1\n[[kernel]]\nfamily = \"vector_add\"\ntargets = [\"reference\"]\n";
    let warmed = context.warm(plan, &WarmOptions::default()).unwrap();
    assert_eq!((warmed.total, warmed.compiled), (1, 1));
    let query = context
        .query(&Program::family("vector_add"), "reference")
        .unwrap();
    assert!(query.contains("\"cached\": true"), "{}", query);
    let error = context
        .warm("plan = 2\n", &WarmOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.status(), Status::InvalidArgument);
}

#[cfg(feature = "experimental")]
#[test]
fn a_configuration_is_found_and_tuning_can_be_cancelled() {
    let context = context();
    let cpu = match context.find_device("cpu") {
        Ok(cpu) => cpu,
        Err(_) => return, // the CPU module is not built
    };
    let program = Program::family("softmax")
        .param("t", "f32")
        .param("N", 64)
        .param("bm", "1,8")
        .param("bn", 512);
    let mut events = Vec::new();
    let mut progress = |event: &TuneEvent| {
        events.push(event.clone());
        true
    };
    let tuned = context
        .tune(
            &program,
            &cpu,
            TuneOptions::new(&[64], 1.).progress(&mut progress),
        )
        .unwrap();
    assert!(events
        .iter()
        .any(|e| e.fate == Fate::Measured && e.median_ns > 0.));
    assert!(events.iter().all(|e| e.configuration.contains("bn=512")));
    assert_eq!(tuned.space, 2);
    assert!(tuned.median_ns > 0. && tuned.report.contains("\"bm\""));
    let (x, mut y) = (vec![1f32; 64 * 64], vec![0f32; 64 * 64]);
    tuned
        .kernel
        .launch(&cpu)
        .input(&x, &[64, 64])
        .output(&mut y, &[64, 64])
        .run()
        .unwrap();
    assert!((y[0] - 1. / 64.).abs() < 1e-6);

    let error = context
        .tune(
            &program,
            &cpu,
            TuneOptions::new(&[64], 1.).progress(&mut |_| false),
        )
        .err()
        .unwrap();
    assert_eq!(error.status(), Status::Cancelled);
    let panicked = std::panic::catch_unwind(|| {
        let mut progress = |_: &TuneEvent| -> bool { panic!("on its way through C") };
        let _ = context.tune(
            &program,
            &cpu,
            TuneOptions::new(&[64], 1.).progress(&mut progress),
        );
    });
    assert!(panicked.is_err());
}
