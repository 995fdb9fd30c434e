/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.maven.model.Model;
import org.apache.maven.model.building.DefaultModelBuildingRequest;
import org.apache.maven.model.building.ModelBuilder;
import org.apache.maven.model.building.ModelBuildingException;
import org.apache.maven.model.building.ModelBuildingRequest;
import org.apache.maven.repository.internal.ArtifactDescriptorUtils;
import org.apache.maven.repository.supplier.RepositorySystemSupplier;
import org.apache.maven.repository.supplier.SessionBuilderSupplier;
import org.apache.maven.settings.Mirror;
import org.apache.maven.settings.Proxy;
import org.apache.maven.settings.Settings;
import org.apache.maven.settings.building.DefaultSettingsBuilderFactory;
import org.apache.maven.settings.building.DefaultSettingsBuildingRequest;
import org.apache.maven.settings.building.SettingsBuildingException;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.RepositorySystemSession;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.collection.CollectRequest;
import org.eclipse.aether.graph.Dependency;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.resolution.ArtifactResult;
import org.eclipse.aether.resolution.DependencyRequest;
import org.eclipse.aether.resolution.DependencyResolutionException;
import org.eclipse.aether.util.artifact.JavaScopes;
import org.eclipse.aether.util.filter.DependencyFilterUtils;
import org.eclipse.aether.util.repository.DefaultMirrorSelector;
import org.eclipse.aether.util.repository.DefaultProxySelector;

/**
 * The repositories that Maven itself would use: the local one, and the central one through the mirrors and proxies of the
 * user's and the installation's {@code settings.xml}. Credentials of servers are not read. Thread-safe.
 */
final class MavenRepositories {
    private final RepositorySystem system;
    private final RepositorySystemSession session;
    private final List<RemoteRepository> remotes;

    MavenRepositories() {
        RepositorySystemSupplier supplier = new RepositorySystemSupplier();
        Settings settings = settings();
        this.system = supplier.get();
        this.session = new SessionBuilderSupplier(system)
                .get()
                .withLocalRepositoryBaseDirectories(localRepository(settings))
                .setSystemProperties(System.getProperties())
                .setMirrorSelector(mirrors(settings))
                .setProxySelector(proxies(settings))
                .build();
        this.remotes = system.newResolutionRepositories(session, central(supplier.getModelBuilder()));
    }

    /**
     * Takes an artifact and all that it needs at run time, from the local repository or else from the remote ones.
     *
     * @param coordinates {@code group:artifact:version}
     * @return the jars, the artifact's own first
     */
    List<Path> runtimeJars(String coordinates) {
        // as a dependency of ours and not as the root: what is optional for others is so for us
        CollectRequest dependency = new CollectRequest()
                .addDependency(new Dependency(new DefaultArtifact(coordinates), JavaScopes.RUNTIME))
                .setRepositories(remotes);
        try {
            return system
                    .resolveDependencies(
                            session,
                            new DependencyRequest(
                                    dependency, DependencyFilterUtils.classpathFilter(JavaScopes.RUNTIME)))
                    .getArtifactResults()
                    .stream()
                    .map(ArtifactResult::getArtifact)
                    .map(artifact -> artifact.getPath())
                    .toList();
        } catch (DependencyResolutionException e) {
            throw new IllegalStateException("can't resolve " + coordinates + " from " + remotes, e);
        }
    }

    /** Maven's super POM knows where the central repository is, so that nothing here has to. */
    private static List<RemoteRepository> central(ModelBuilder models) {
        Model empty = new Model();
        empty.setModelVersion("4.0.0");
        empty.setGroupId("empty");
        empty.setArtifactId("empty");
        empty.setVersion("1");
        try {
            return models
                    .build(new DefaultModelBuildingRequest()
                            .setRawModel(empty)
                            .setValidationLevel(ModelBuildingRequest.VALIDATION_LEVEL_MINIMAL))
                    .getEffectiveModel()
                    .getRepositories()
                    .stream()
                    .map(ArtifactDescriptorUtils::toRemoteRepository)
                    .toList();
        } catch (ModelBuildingException e) {
            throw new IllegalStateException("can't read Maven's super POM", e);
        }
    }

    private static Settings settings() {
        String mavenHome = System.getProperty("maven.home", System.getenv("MAVEN_HOME"));
        DefaultSettingsBuildingRequest request = new DefaultSettingsBuildingRequest();
        request.setSystemProperties(System.getProperties());
        request.setUserSettingsFile(new File(System.getProperty("user.home"), ".m2/settings.xml"));
        if (mavenHome != null) {
            request.setGlobalSettingsFile(new File(mavenHome, "conf/settings.xml"));
        }
        try {
            return new DefaultSettingsBuilderFactory()
                    .newInstance()
                    .build(request)
                    .getEffectiveSettings();
        } catch (SettingsBuildingException e) {
            throw new IllegalStateException("can't read Maven's settings.xml", e);
        }
    }

    /** In Maven's own order of precedence; Surefire sets {@code localRepository} in the JVMs that it starts. */
    private static Path localRepository(Settings settings) {
        return Stream.of(
                        System.getProperty("maven.repo.local"),
                        System.getProperty("localRepository"),
                        settings.getLocalRepository())
                .filter(path -> path != null && !path.isEmpty())
                .findFirst()
                .map(Path::of)
                .orElseGet(() -> Path.of(System.getProperty("user.home"), ".m2", "repository"));
    }

    private static DefaultMirrorSelector mirrors(Settings settings) {
        DefaultMirrorSelector selector = new DefaultMirrorSelector();
        for (Mirror mirror : settings.getMirrors()) {
            selector.add(
                    mirror.getId(),
                    mirror.getUrl(),
                    mirror.getLayout(),
                    false,
                    mirror.isBlocked(),
                    mirror.getMirrorOf(),
                    mirror.getMirrorOfLayouts());
        }
        return selector;
    }

    private static DefaultProxySelector proxies(Settings settings) {
        DefaultProxySelector selector = new DefaultProxySelector();
        for (Proxy proxy : settings.getProxies()) {
            if (proxy.isActive()) {
                selector.add(
                        new org.eclipse.aether.repository.Proxy(proxy.getProtocol(), proxy.getHost(), proxy.getPort()),
                        proxy.getNonProxyHosts());
            }
        }
        return selector;
    }
}
