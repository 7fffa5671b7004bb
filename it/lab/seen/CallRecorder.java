import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.TypeKind;
import java.lang.classfile.attribute.RuntimeVisibleAnnotationsAttribute;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessFlag;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.ProtectionDomain;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A Java agent that writes down which function of libibverbs and librdmacm was called, on which device, by which test.
 * Its argument is the folder for its files, one for each JVM; in a guest they go to the exchange folder.
 *
 * <p>A line is {@code C-LEVEL-METHOD JAVA-METHOD DEVICE TEST}: a method of a class in a package {@code ffm}, or
 * {@code -} if nothing says that C is called; a method of the objects that programs use; {@code rxe}, {@code siw},
 * {@code stub} or {@code -} for a call that is for no device; and the simple name of a test class. {@code SeenOn} makes
 * the tables' column of them.
 *
 * <p>It changes the classes as they are loaded: each method that calls C reports itself with its first pointer, and
 * each test method reports its class. The device is found by the pointers: the first word of all objects of libibverbs
 * is their context.
 */
public final class CallRecorder {
    private static final String VERBS = "org/verbena/verbs/ffm/";
    private static final Set<String> CALLERS = Set.of(
            VERBS + "LibIbverbs",
            VERBS + "VerbsOps",
            VERBS + "WorkRequestOps",
            VERBS + "CompletionQueueOps",
            "org/verbena/verbs/packet/ffm/PacketOps",
            "org/verbena/cm/ffm/RdmaCm");

    /**
     * Their first pointer is a context that librdmacm may have opened. All else on a device begins with one of them.
     */
    private static final Set<String> OF_CONTEXTS = Set.of(
            "LibIbverbs.queryDevice",
            "LibIbverbs.queryPort",
            "LibIbverbs.allocPd",
            "LibIbverbs.createCompChannel",
            "LibIbverbs.createCq",
            "LibIbverbs.getAsyncEvent",
            "VerbsOps.queryDeviceEx",
            "VerbsOps.queryPort");

    private static final Set<String> OF_DEVICES = Set.of(
            "LibIbverbs.getDeviceName",
            "LibIbverbs.getDeviceIndex",
            "LibIbverbs.getDeviceGuid",
            "LibIbverbs.openDevice");

    /** Several functions of one prototype share a method, so the callers of each call count. */
    private static final Set<String> SHARED = Set.of("WorkRequestOps", "CompletionQueueOps");

    /** In struct ibv_device: two pointers and two enumerators before. */
    private static final int NAME_OFFSET = 24;

    /** Linux maps nothing below; tests pass small numbers for pointers that nobody follows. */
    private static final long MIN_POINTER = 65_536;

    private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    private static final StackWalker STACK = StackWalker.getInstance();
    private static final Map<Long, String> CONTEXTS = new ConcurrentHashMap<>();
    private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();
    private static final Set<String> LINES = ConcurrentHashMap.newKeySet();
    private static final ClassDesc ME = ClassDesc.of("CallRecorder");

    /** Enough for the set never to grow, which it may not do on two threads at once. */
    private static final int MAX_METHODS = 16_384;

    /** Methods of the objects that programs use, and which of them the current test has passed. */
    private static final List<String> METHODS = new CopyOnWriteArrayList<>();

    private static final AtomicReference<BitSet> PASSED = new AtomicReference<>(new BitSet(MAX_METHODS));

    private static volatile String test = "-";
    private static Path file;

    private CallRecorder() {}

    public static void premain(String folder, Instrumentation instrumentation) throws IOException {
        Path guest = Path.of("/lab-exchange");
        Path place = Files.isDirectory(guest) ? guest.resolve("calls") : Path.of(folder);
        Files.createDirectories(place);
        file = place.resolve(ProcessHandle.current().pid() + "-" + System.nanoTime() + ".txt");
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
                try {
                    if (name == null || !name.startsWith("org/verbena/")) {
                        return null;
                    }
                    if (CALLERS.contains(name)) {
                        return change(bytes, CallRecorder::callsC, CallRecorder::reportCall);
                    }
                    return name.matches("org/verbena/(verbs|cm)/(?!ffm/|packet/ffm/|.*Test).*")
                            ? change(bytes, CallRecorder::isForPrograms, CallRecorder::reportMethod)
                            : change(bytes, CallRecorder::isTest, CallRecorder::reportTest);
                } catch (Throwable thrown) {
                    thrown.printStackTrace();
                    return null;
                }
            }
        });
    }

    private interface Choice {
        boolean takes(MethodModel method);
    }

    private interface Report {
        void write(CodeBuilder code, MethodModel method);
    }

    private static byte[] change(byte[] bytes, Choice choice, Report report) {
        var model = ClassFile.of().parse(bytes);
        if (model.methods().stream().noneMatch(choice::takes)) {
            return null;
        }
        return ClassFile.of().transformClass(model, (builder, element) -> {
            if (element instanceof MethodModel method && choice.takes(method)) {
                builder.transformMethod(method, (methodBuilder, part) -> {
                    if (part instanceof CodeModel code) {
                        methodBuilder.transformCode(code, new CodeTransform() {
                            @Override
                            public void atStart(CodeBuilder start) {
                                report.write(start, method);
                            }

                            @Override
                            public void accept(CodeBuilder same, CodeElement instruction) {
                                if (instruction instanceof ReturnInstruction
                                        && method.methodName().stringValue().equals("openDevice")) {
                                    same.dup2();
                                    same.loadLocal(TypeKind.LONG, same.parameterSlot(1));
                                    same.invokestatic(ME, "opened", MethodTypeDesc.ofDescriptor("(JJ)V"));
                                }
                                same.with(instruction);
                            }
                        });
                    } else {
                        methodBuilder.with(part);
                    }
                });
            } else {
                builder.with(element);
            }
        });
    }

    private static boolean callsC(MethodModel method) {
        return method.flags().has(AccessFlag.STATIC) && method.flags().has(AccessFlag.PUBLIC);
    }

    private static void reportCall(CodeBuilder code, MethodModel method) {
        String type = method.parent().orElseThrow().thisClass().asInternalName();
        code.loadConstant(type.substring(type.lastIndexOf('/') + 1) + "." + method.methodName().stringValue());
        int parameter = 0;
        for (ClassDesc each : method.methodTypeSymbol().parameterList()) {
            if (each.equals(ConstantDescs.CD_long)) {
                code.loadLocal(TypeKind.LONG, code.parameterSlot(parameter));
                code.invokestatic(ME, "called", MethodTypeDesc.ofDescriptor("(Ljava/lang/String;J)V"));
                return;
            }
            parameter++;
        }
        code.lconst_0();
        code.invokestatic(ME, "called", MethodTypeDesc.ofDescriptor("(Ljava/lang/String;J)V"));
    }

    private static boolean isForPrograms(MethodModel method) {
        return method.flags().has(AccessFlag.PUBLIC)
                && !method.flags().has(AccessFlag.SYNTHETIC)
                && method.code().isPresent()
                && !method.methodName().equalsString("<init>");
    }

    private static void reportMethod(CodeBuilder code, MethodModel method) {
        String type = method.parent().orElseThrow().thisClass().asInternalName();
        synchronized (METHODS) {
            code.loadConstant(METHODS.size());
            METHODS.add(type.substring(type.lastIndexOf('/') + 1).replace('$', '.') + "."
                    + method.methodName().stringValue());
        }
        code.invokestatic(ME, "passed", MethodTypeDesc.ofDescriptor("(I)V"));
    }

    private static boolean isTest(MethodModel method) {
        return !method.flags().has(AccessFlag.STATIC)
                && method.findAttribute(Attributes.runtimeVisibleAnnotations()).stream()
                        .map(RuntimeVisibleAnnotationsAttribute::annotations)
                        .flatMap(each -> each.stream())
                        .anyMatch(each -> each.className().stringValue().startsWith("Lorg/junit/jupiter/"));
    }

    private static void reportTest(CodeBuilder code, MethodModel method) {
        code.aload(0);
        code.invokestatic(ME, "testing", MethodTypeDesc.ofDescriptor("(Ljava/lang/Object;)V"));
    }

    public static void testing(Object object) {
        Class<?> type = object.getClass();
        while (type.getEnclosingClass() != null) {
            type = type.getEnclosingClass();
        }
        if (!test.equals(type.getSimpleName())) {
            test = type.getSimpleName();
            PASSED.set(new BitSet(MAX_METHODS));
        }
    }

    public static void passed(int method) {
        BitSet before = PASSED.get();
        if (!before.get(method)) {
            // Two threads may both write it down, or one may lose the other's bit: then it is written again.
            before.set(method);
            write("-", METHODS.get(method), "-");
        }
    }

    public static void opened(long context, long device) {
        if (context != 0) {
            CONTEXTS.put(context, nameOf(device));
        }
    }

    public static void called(String method, long pointer) {
        String device = deviceOf(method, pointer);
        String key = method + " " + device + " " + test;
        boolean isNew = SEEN.add(key);
        if (!isNew && !SHARED.contains(method.substring(0, method.indexOf('.')))) {
            return;
        }
        STACK.forEach(frame -> {
            String type = frame.getClassName();
            if ((type.startsWith("org.verbena.verbs.") || type.startsWith("org.verbena.cm."))
                    && !type.contains(".ffm.")) {
                write(method, type.substring(type.lastIndexOf('.') + 1) + "." + frame.getMethodName(), device);
            }
        });
        if (isNew) {
            write(method, "-", device);
        }
    }

    private static String deviceOf(String method, long pointer) {
        if (pointer < MIN_POINTER) {
            return "-";
        }
        if (OF_DEVICES.contains(method)) {
            return nameOf(pointer);
        }
        if (OF_CONTEXTS.contains(method)) {
            return CONTEXTS.computeIfAbsent(pointer, context -> nameOf(word(context)));
        }
        String known = method.equals("LibIbverbs.closeDevice") ? CONTEXTS.remove(pointer) : CONTEXTS.get(pointer);
        if (known != null) {
            return known;
        }
        known = CONTEXTS.get(word(pointer));
        return known == null ? "-" : known;
    }

    private static long word(long pointer) {
        return MEMORY.get(ValueLayout.JAVA_LONG_UNALIGNED, pointer);
    }

    private static String nameOf(long device) {
        String name = MEMORY.getString(device + NAME_OFFSET);
        if (name.startsWith("rxe") || name.startsWith("siw")) {
            return name.substring(0, 3);
        }
        return "stub";
    }

    private static void write(String method, String caller, String device) {
        String line = method + " " + caller + " " + device + " " + test + "\n";
        if (LINES.add(line)) {
            try {
                Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
