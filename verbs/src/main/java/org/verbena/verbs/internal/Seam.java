package org.verbena.verbs.internal;

/**
 * What constructors ask for that only the module {@code org.verbena.verbs.packet} may call: no other module reads this
 * package, so no other can name what to pass.
 */
public final class Seam {
    /** The only one. */
    public static final Seam PACKET = new Seam();

    private Seam() {}
}
